//! Questions in the jq language: one question, one answer, yes or no.

use jaq_core::data::JustLut;
use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Filter, Vars, unwrap_valr};
use jaq_json::{Val, read};
use serde_json::Value;

/// The answer for one inventory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Yes,
    /// Anything but true.
    No,
    /// There is no answer, there are several, or the question is wrong.
    Failed(String),
}

/// What a question must not do: look around on this machine, or end the operator.
const FORBIDDEN: [&str; 5] = ["env", "halt", "halt_error", "input", "inputs"];

/// The text is what is wrong with it.
pub fn check(query: &str) -> Result<(), String> {
    compile(query).map(drop)
}

pub fn ask(query: &str, inventory: &Value) -> Verdict {
    let filter = match compile(query) {
        Ok(filter) => filter,
        Err(why) => return Verdict::Failed(why),
    };
    let input = match read::parse_single(inventory.to_string().as_bytes()) {
        Ok(input) => input,
        Err(error) => return Verdict::Failed(error.to_string()),
    };
    let ctx = Ctx::<JustLut<Val>>::new(&filter.lut, Vars::new([]));
    let mut answers = filter.id.run((ctx, input)).map(unwrap_valr);
    let first = answers.next();
    match (first, answers.next()) {
        (None, _) => Verdict::Failed("the query has no answer".into()),
        (Some(_), Some(_)) => Verdict::Failed("the query has several answers".into()),
        (Some(Err(error)), None) => Verdict::Failed(error.to_string()),
        (Some(Ok(Val::Bool(true))), None) => Verdict::Yes,
        (Some(Ok(_)), None) => Verdict::No,
    }
}

fn compile(query: &str) -> Result<Filter<JustLut<Val>>, String> {
    let allowed = |name: &str| !FORBIDDEN.contains(&name);
    let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let loader = Loader::new(defs.filter(|def| allowed(def.name)));
    let arena = Arena::default();
    let file = File {
        code: query,
        path: (),
    };
    let modules = loader
        .load(&arena, file)
        .map_err(|_| "the query is not written in the jq language".to_owned())?;
    let funs = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let compiler = Compiler::default().with_funs(funs.filter(|(name, ..)| allowed(name)));
    compiler.compile(modules).map_err(|errors| {
        let names = errors
            .into_iter()
            .flat_map(|(_, errors)| errors)
            .map(|(name, _)| name.to_owned());
        format!(
            "the query uses what is not known here: {}",
            names.collect::<Vec<_>>().join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn host() -> Value {
        json!({
            "memory": { "physicalBytes": 17_179_869_184_i64 },
            "cpu": { "count": 4, "architecture": "x86_64", "flags": ["vmx", "avx2"] },
            "disks": [{ "id": "sda", "sizeBytes": 120_000_000_000_i64 }, { "id": "sdb", "sizeBytes": 1 }],
            "boot": {}, "systemVendor": { "manufacturer": "Red Hat" },
        })
    }

    #[test]
    fn questions_people_ask_are_answered() {
        for (query, answer) in [
            (".cpu.count == 4", Verdict::Yes),
            (".cpu.count > 4", Verdict::No),
            (
                ".memory.physicalBytes >= 17179869184 and .memory.physicalBytes < 17179869185",
                Verdict::Yes,
            ),
            (
                "[.disks[] | select(.sizeBytes > 100000000000)] | length == 1",
                Verdict::Yes,
            ),
            (".disks | any(.sizeBytes > 100000000000)", Verdict::Yes),
            (".cpu.flags | index(\"avx2\") != null", Verdict::Yes),
            (".systemVendor.manufacturer | test(\"^red\"; \"i\")", Verdict::Yes),
            (".cpu.flags | contains([\"svm\"])", Verdict::No),
            (".gpus == null", Verdict::Yes),
            (".cpu.architecture", Verdict::No),
            ("null", Verdict::No),
        ] {
            assert_eq!(ask(query, &host()), answer, "{query}");
        }
    }

    #[test]
    fn questions_without_exactly_one_answer_fail() {
        for query in [
            ".gpus[].name",
            ".disks[].id == \"sda\"",
            "empty",
            ".cpu.count.x",
            "((",
            "nonsense",
        ] {
            assert!(matches!(ask(query, &host()), Verdict::Failed(_)), "{query}");
        }
    }

    #[test]
    fn questions_cannot_look_around() {
        for query in [
            "env",
            "$ENV",
            "input",
            "halt",
            "halt_error",
            "env.HOME == \"/\"",
            "import \"a\" as a; true",
        ] {
            assert!(check(query).is_err(), "{query}");
        }
        assert_eq!(check(".cpu.count > 1"), Ok(()));
    }
}
