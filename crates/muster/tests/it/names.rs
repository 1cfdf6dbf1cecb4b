//! Objects can be named in several ways.

use crate::canned::{Canned, HOST_A, HOST_B, HOST_C};
use crate::program::run;

#[test]
fn a_host_is_found_by_id_by_its_beginning_and_by_name() {
    let hub = Canned::start(&[]);
    for name in [
        HOST_C,
        "bbbb33",
        "worker-0",
        &format!("lab/{HOST_C}"),
        "lab/worker-0",
        "host/worker-0",
    ] {
        let ran = run(&["host", "get", name, "-o", "name", "--hub", &hub.url]);
        assert_eq!((ran.code, ran.out.trim()), (0, HOST_C), "{name}: {}", ran.err);
    }
}

#[test]
fn an_ambiguous_name_lists_the_candidates_and_an_unknown_one_is_not_found() {
    let hub = Canned::start(&[]);
    let ran = run(&["host", "get", "twin", "--hub", &hub.url]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.contains(HOST_A) && ran.err.contains(HOST_B) && ran.err.contains("next:"),
        "{}",
        ran.err
    );
    assert_eq!(
        run(&["host", "get", "aaaa", "--hub", &hub.url]).code,
        2,
        "two ids begin like this"
    );
    let ran = run(&["host", "get", "nobody", "--hub", &hub.url]);
    assert_eq!(ran.code, 4);
    assert!(
        ran.err.contains("`nobody`") && ran.err.contains("muster host list"),
        "{}",
        ran.err
    );
}
