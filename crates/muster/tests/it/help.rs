//! Help, version, completion and generated documents.

use crate::program::run;

#[test]
fn help_lists_the_nouns_and_leaves_out_what_is_internal() {
    let help = run(&["--help"]);
    assert_eq!(help.code, 0);
    for noun in [
        "serve",
        "sim",
        "infra-env",
        "host",
        "cluster",
        "event",
        "image",
        "changes",
        "status",
        "completion",
    ] {
        assert!(
            help.out.contains(&format!("\n  {noun} ")),
            "{noun} is missing in\n{}",
            help.out
        );
    }
    assert!(!help.out.contains("\n  gen "), "{}", help.out);
    assert!(help.out.contains("Examples:"));
}

#[test]
fn flags_others_rely_on_are_there() {
    let serve = run(&["serve", "--help"]).out;
    for flag in [
        "--listen <ADDR:PORT>",
        "--data-dir <DIR>",
        "--database <URL>",
        "MUSTER_DATA_DIR",
        "[default: 127.0.0.1:8090]",
    ] {
        assert!(serve.contains(flag), "{flag} is missing in\n{serve}");
    }
    let sim = run(&["sim", "--help"]).out;
    for flag in [
        "--hub <URL>",
        "--infra-env <INFRA-ENV>",
        "--hosts <N>",
        "--seed <S>",
        "--poll <SECONDS>",
        "--fault <SPEC>",
        "--install-time <SPAN>",
        "--return-boots <SPAN|off>",
    ] {
        assert!(sim.contains(flag), "{flag} is missing in\n{sim}");
    }
}

#[test]
fn every_command_that_does_something_has_examples() {
    for verb in [
        "serve",
        "sim",
        "status",
        "changes",
        "completion",
        "event list",
        "host list",
        "host get",
        "host bind",
        "host unbind",
        "host move",
        "host install",
        "host reset",
        "host reclaim",
        "host update",
        "host delete",
        "host explain",
        "host verdicts",
        "cluster list",
        "cluster get",
        "cluster create",
        "cluster import",
        "cluster update",
        "cluster delete",
        "cluster hosts",
        "cluster install",
        "cluster cancel",
        "cluster reset",
        "cluster wait",
        "cluster add-hosts",
        "cluster ignition set",
        "cluster ignition list",
        "cluster ignition get",
        "cluster ignition delete",
        "cluster manifest add",
        "cluster manifest list",
        "cluster manifest get",
        "cluster manifest delete",
        "cluster install-config",
        "cluster credentials",
        "cluster kubeconfig",
        "cluster file",
        "cluster logs",
        "infra-env list",
        "infra-env get",
        "infra-env explain",
        "infra-env create",
        "infra-env update",
        "infra-env delete",
        "infra-env download",
        "image build",
        "image inspect",
        "image serve",
    ] {
        let mut args: Vec<&str> = verb.split(' ').collect();
        args.push("--help");
        let help = run(&args);
        assert!(help.out.contains("Examples:\n  muster "), "{verb}:\n{}", help.out);
    }
}

#[test]
fn the_help_of_bind_is_stable() {
    insta::assert_snapshot!(run(&["host", "bind", "--help"]).out);
}

#[test]
fn exit_codes_are_documented() {
    for args in [&["help", "exit-codes"][..], &["exit-codes"]] {
        let told = run(args);
        assert!(told.code == 0 && told.out.contains("5  timed out"), "{told:?}");
    }
}

#[test]
fn the_version_is_told() {
    assert_eq!(
        run(&["--version"]).out,
        format!("muster {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn completion_scripts_know_the_verbs() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completion", shell]);
        assert!(script.code == 0 && script.out.contains("unbind"), "{shell}");
    }
}

#[test]
fn generated_documents_do_not_depend_on_the_surroundings() {
    let plain = run(&["gen", "cli"]);
    assert!(plain.code == 0 && plain.out.starts_with("# Command line reference"));
    let mut elsewhere = crate::program::command(&["gen", "cli"]);
    elsewhere
        .env("OS_IMAGES", "[]")
        .env("COLUMNS", "60")
        .env("MUSTER_HUB", "http://other:1");
    assert_eq!(crate::program::finish(elsewhere).out, plain.out);
}

#[test]
fn the_faults_in_the_help_can_be_used() {
    let help = run(&["sim", "--help"]).out;
    let faults = help.split("Faults are written").nth(1).unwrap();
    let words: Vec<&str> = faults
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split_once(':'))
        .map(|(word, _)| word)
        .collect();
    assert!(words.len() >= 19, "{words:?}");
    for word in words {
        let fault = format!("{word}:#0:1:1:1:1");
        let ran = run(&["sim", "--infra-env", "x", "--hosts", "1", "--fault", &fault]);
        // Too many details, of a fault that there is.
        assert!(
            ran.code == 2 && !ran.err.contains("there is no fault"),
            "{fault}: {}",
            ran.err
        );
    }
}

#[test]
fn the_states_of_hosts_and_clusters_are_generated() {
    assert!(run(&["gen", "states"]).out.starts_with("# States of a host\n"));
    assert!(
        run(&["gen", "states", "host"])
            .out
            .starts_with("# States of a host\n")
    );
    let cluster = run(&["gen", "states", "cluster"]);
    assert!(cluster.code == 0 && cluster.out.starts_with("# States of a cluster\n"));
    assert!(
        cluster.out.contains("Preparing --> Installing"),
        "{}",
        cluster.out
    );
}
