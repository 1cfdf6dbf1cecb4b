//! `muster completion`: scripts that let shells complete commands and flags.

use crate::exit::Outcome;
use crate::output;
use clap::ValueEnum;
use clap_complete::Shell;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  muster completion bash > /etc/bash_completion.d/muster
  muster completion zsh > \"${fpath[1]}/_muster\"
  muster completion fish > ~/.config/fish/completions/muster.fish")]
pub struct CompletionArgs {
    #[arg(value_enum)]
    shell: Kind,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    Bash,
    Zsh,
    Fish,
}

pub fn run(args: CompletionArgs) -> Outcome {
    let shell = match args.shell {
        Kind::Bash => Shell::Bash,
        Kind::Zsh => Shell::Zsh,
        Kind::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut super::tree(), "muster", &mut script);
    output::print_bytes(&script)
}
