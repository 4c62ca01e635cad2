//! Taking hold of CUPTI, step by step; a step that fails is noted and never stops the program.

use tracekit_spool::{Tag, push_field};

use crate::buffer;
use crate::cupti::Cupti;
use crate::session::Session;

/// How often CUPTI itself is to complete buffers, beside the flushes of the worker.
const FLUSH_PERIOD_MS: u32 = 1_000;

/// What subscribing answers when another tool was there first: `MAX_LIMIT_REACHED` in older versions, then
/// `MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED`.
const TAKEN: [u32; 2] = [12, 39];

/// Has CUPTI record into this session, once.
pub(crate) fn attach(session: &'static Session) {
    let mut first = false;
    session.cupti.get_or_init(|| {
        first = true;
        match Cupti::open() {
            Ok(cupti) => prepare(session, cupti),
            Err(why) => {
                let line = format!("no CUPTI, so no device activity: {why}");
                session.spool.note(&line);
                None
            }
        }
    });
    // Kinds are enabled when the session knows CUPTI, for buffers may come at once.
    if first && session.cupti().is_some() {
        session.gate.attached(session);
        session.buffers.wake();
    }
}

/// Subscribes and registers; gives CUPTI back when it will work.
fn prepare(session: &'static Session, cupti: Cupti) -> Option<Cupti> {
    let spool = &session.spool;
    let mut fields = Vec::new();
    push_field(
        &mut fields,
        "version",
        cupti.version().to_string().as_bytes(),
    );
    push_field(&mut fields, "path", cupti.path.as_bytes());
    spool.frame(Tag::Cupti, &[&fields]);

    let mut sizes = Vec::new();
    let known = cupti.record_sizes(&session.config.kinds);
    for (kind, size) in known.iter() {
        sizes.extend_from_slice(&kind.to_le_bytes());
        sizes.extend_from_slice(&size.to_le_bytes());
    }
    spool.frame(Tag::Sizes, &[&sizes]);

    let code = cupti.subscribe();
    if code != 0 {
        let why = cupti.explain(code);
        spool.note(&if TAKEN.contains(&code) {
            format!("no device activity: another tool has subscribed to CUPTI ({why})")
        } else {
            format!("no device activity: CUPTI cannot be used here ({why})")
        });
        return None;
    }
    let code = cupti.use_system_thread_ids();
    if code != 0 {
        let why = cupti.explain(code);
        spool.note(&format!(
            "ranges may not be linked to API calls: CUPTI does not number threads as the system does ({why})"
        ));
    }
    session.buffers.stock();
    let code = cupti.register(Some(buffer::request), Some(buffer::complete));
    if code != 0 {
        let why = cupti.explain(code);
        spool.note(&format!(
            "no device activity: CUPTI takes no buffers ({why})"
        ));
        return None;
    }
    cupti.flush_period(FLUSH_PERIOD_MS);
    Some(cupti)
}
