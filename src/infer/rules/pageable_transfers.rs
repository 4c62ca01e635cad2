//! Copies from and to memory that is not pinned.

use super::super::case::{Case, Judgement, percent, share};
use super::super::inference::Category;
use super::Rule;
use crate::error::Result;

pub(super) const RULE: Rule = Rule {
    code: "pageable_transfers",
    category: Category::Memory,
    question: "Do copies use pageable memory?",
    method: "Copies whose name says Pageable: the driver moves them through a buffer of its own and the host waits. \
             The time in which nothing else runs on the device, as a share of the window.",
    next_action: "pin_memory=True in the DataLoader, tensor.pin_memory() for others, then non_blocking=True.",
    tables: &["attribution", "device_work", "events"],
    needs_launches: false,
    judge,
};

fn judge(case: &mut Case<'_>) -> Result<Judgement> {
    let Some(window) = case.window()? else {
        return Ok(Judgement::not_applicable("there is no device work"));
    };
    let between = "class = 'memcpy' AND (name LIKE '%HtoD%' OR name LIKE '%DtoH%')";
    let copies = case.count(
        "copies from and to the host",
        &format!("SELECT COUNT(*) FROM device_work WHERE {between}"),
    )?;
    if copies == 0 {
        let any = case.count(
            "copies",
            "SELECT COUNT(*) FROM device_work WHERE class = 'memcpy'",
        )?;
        let calls = if any == 0 { case.copy_calls()? } else { 0 };
        return Ok(match calls {
            0 => Judgement::not_applicable("nothing is copied from or to the host"),
            calls => Judgement::insufficient(format!(
                "{calls} calls that copy are in the files, but no copy on a device"
            )),
        });
    }
    let told = case.count(
        "of them that tell the kind of memory",
        &format!(
            "SELECT COUNT(*) FROM device_work WHERE {between} AND (name LIKE '%Pageable%' OR name LIKE '%Pinned%')"
        ),
    )?;
    if told == 0 {
        return Ok(Judgement::insufficient(
            "names of copies do not tell the kind of memory",
        ));
    }
    let pageable = format!("{between} AND name LIKE '%Pageable%'");
    case.count(
        "pageable copies",
        &format!("SELECT COUNT(*) FROM device_work WHERE {pageable}"),
    )?;
    case.ns(
        "sum of pageable copies",
        &format!("SELECT SUM(dur_ns) FROM device_work WHERE {pageable}"),
    )?;
    case.ns(
        "time of the host in the calls",
        &format!("SELECT SUM(launch_dur_ns) FROM device_work WHERE {pageable}"),
    )?;
    case.number(
        "size of pageable copies",
        "bytes",
        &format!("SELECT SUM(size_bytes) FROM device_work WHERE {pageable}"),
    )?;
    let exposed = case.ns(
        "pageable copies that nothing hides",
        &format!("SELECT SUM(held_ns) FROM device_work WHERE {pageable}"),
    )?;
    case.blame(&format!(
        "SELECT file, event, name FROM device_work WHERE {pageable} ORDER BY dur_ns DESC, file, event"
    ))?;
    let of_window = share(exposed, window);
    let part = percent(of_window);
    Ok(Judgement::when(
        of_window >= case.limit("exposed_share"),
        format!("{part} of the window is copies from or to pageable memory"),
        format!("only {part} of the window is copies from or to pageable memory"),
    )
    .winning(exposed, window))
}
