//! An attribution as tidy rows, for spreadsheets; see [`attribution_frame`].

use super::super::document::Table;
use super::super::inspection::frame_rows;
use crate::attribute::Attribution;
use crate::inspect::attribution_frame;

/// `attribution` as rows for a data frame or a spreadsheet.
pub fn attribution_rows(attribution: &Attribution) -> Table {
    frame_rows(&attribution_frame(attribution))
}

#[cfg(test)]
mod tests {
    use super::super::super::csv;
    use super::super::super::document::Value;
    use super::super::sample;
    use super::*;
    use crate::units::Ns;

    #[test]
    fn rows_add_up_to_the_totals() {
        let attribution = sample::two_ranks();
        let table = attribution_rows(&attribution);
        let mut sum = Ns::ZERO;
        let mut window = Ns::ZERO;
        for row in table
            .rows
            .iter()
            .filter(|row| row.cells[5] == Value::text("all"))
        {
            assert_eq!(row.cells.len(), table.columns.len());
            if let Value::Ns(time) = row.cells[8] {
                sum += time;
            }
            if let Value::Ns(time) = row.cells[16] {
                window += time;
            }
        }
        assert_eq!(sum, attribution.totals.total.sum_ns);
        assert_eq!(window, Ns(40_000_000));
    }

    #[test]
    fn csv_names_every_row_in_full() {
        let text = csv::render(&attribution_rows(&sample::one_rank()));
        let mut lines = text.lines();
        assert_eq!(
            lines.next(),
            Some(
                "run,rank,input,window,device,step,partial,bucket,sum_ns,busy_ns,events,launches,\
                 compute_ns,communication_ns,memcpy_ns,memset_ns,timeline_ns,host_wall_ns,\
                 host_self_ns"
            )
        );
        assert_eq!(
            lines.next(),
            Some(
                "trace,0,trace/rank-0.json,0,0,all,,forward,6000000,6000000,12,12,6000000,0,0,0,\
                 6000000,,"
            )
        );
        assert!(text.contains("\ntrace,0,trace/rank-0.json,0,,all,,forward,,,,,,,,,,,3000000\n"));
    }
}
