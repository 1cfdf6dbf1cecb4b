//! Questions in the jq language: one question, one answer, yes or no.

mod limit;

use jaq_core::data::JustLut;
use jaq_core::load::parse::{Def, Term};
use jaq_core::load::{Arena, File, Loader, parse};
use jaq_core::{Compiler, Ctx, Filter, Vars, unwrap_valr};
use jaq_json::{Val, read};
use limit::{Counter, TooFar};
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

type Data = JustLut<Val>;

/// What a query must not do: read the environment of the operator, write into its log, or end it.
const FORBIDDEN: [&str; 9] = [
    "debug",
    "debug_empty",
    "env",
    "halt",
    "halt_error",
    "input",
    "inputs",
    "stderr",
    "stderr_empty",
];

/// The text is what is wrong with it.
pub fn check(query: &str) -> Result<(), String> {
    apart(|| compile(query).map(drop)).and_then(|checked| checked)
}

pub fn ask(query: &str, inventory: &Value) -> Verdict {
    apart(|| answer(query, inventory)).unwrap_or_else(Verdict::Failed)
}

/// On a thread of its own, which ends early when the question goes too far.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, String> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(limit::STACK_BYTES);
        let started = thread.spawn_scoped(scope, || {
            limit::begin();
            work()
        });
        let ended = started.map_err(|error| error.to_string())?.join();
        ended.map_err(|thrown| match thrown.is::<TooFar>() {
            true => "the query takes too many steps".to_owned(),
            false => "the operator cannot evaluate the query".to_owned(),
        })
    })
}

fn answer(query: &str, inventory: &Value) -> Verdict {
    let filter = match compile(query) {
        Ok(filter) => filter,
        Err(why) => return Verdict::Failed(why),
    };
    let input = match read::parse_single(inventory.to_string().as_bytes()) {
        Ok(input) => input,
        Err(error) => return Verdict::Failed(error.to_string()),
    };
    let ctx = Ctx::<Data>::new(&filter.lut, Vars::new([]));
    let mut answers = filter.id.run((ctx, input)).map(unwrap_valr);
    let first = answers.next();
    match (first, answers.next()) {
        (None, _) => Verdict::Failed("the query returns nothing".into()),
        (Some(_), Some(_)) => Verdict::Failed("the query returns more than one value".into()),
        (Some(Err(error)), None) => Verdict::Failed(error.to_string()),
        (Some(Ok(Val::Bool(true))), None) => Verdict::Yes,
        (Some(Ok(_)), None) => Verdict::No,
    }
}

/// The question's own name among what is defined.
const QUESTION: &str = "the_question";

fn compile(query: &str) -> Result<Filter<Data>, String> {
    if query.len() > limit::LONGEST_QUERY {
        return Err(format!("the query is longer than {} bytes", limit::LONGEST_QUERY));
    }
    let not_jq = || "the query is not valid jq".to_owned();
    let question: Term<&str> = parse(query, |parser| parser.term()).ok_or_else(not_jq)?;
    let allowed = |name: &str| !FORBIDDEN.contains(&name);
    let funs = || {
        let funs = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
        funs.filter(move |(name, ..)| allowed(name) && *name != "range")
    };
    let counter = Counter(
        funs()
            .map(|(name, arguments, _)| (name, arguments.len()))
            .collect(),
    );
    let asked = Def {
        name: QUESTION,
        args: Vec::new(),
        body: question,
    };
    let defs = limit::range().into_iter().chain(jaq_core::defs());
    let defs = defs
        .chain(jaq_std::defs())
        .chain(jaq_json::defs())
        .filter(|def| allowed(def.name));
    let defs = defs.map(shorter).chain([asked]);
    let loader = Loader::new(defs.map(|def| counter.def(def)));
    let arena = Arena::default();
    let file = File {
        code: QUESTION,
        path: (),
    };
    let modules = loader.load(&arena, file).map_err(|_| not_jq())?;
    let compiler = Compiler::default().with_funs(funs().chain(limit::funs()));
    compiler.compile(modules).map_err(|errors| {
        let names = errors
            .into_iter()
            .flat_map(|(_, errors)| errors)
            .map(|(name, _)| name.to_owned());
        format!(
            "the query uses functions that are not available here: {}",
            names.collect::<Vec<_>>().join(", ")
        )
    })
}

/// What lives for ever lives as long as the question, too.
fn shorter<'s>(def: Def<&'static str>) -> Def<&'s str> {
    def
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
    fn queries_cannot_read_the_environment() {
        for query in [
            "env",
            "$ENV",
            "input",
            "halt",
            "halt_error",
            "env.HOME == \"/\"",
            "import \"a\" as a; true",
            "debug",
            "stderr",
            "debug(.cpu)",
        ] {
            assert!(check(query).is_err(), "{query}");
        }
        assert_eq!(check(".cpu.count > 1"), Ok(()));
    }

    #[test]
    fn questions_that_never_end_are_given_up() {
        for query in [
            "def f: f; f",
            "def f: 1 + f; f",
            "def f: [f]; f",
            "def f: try f catch f; f",
            "[repeat(1)] | length > 0",
            "last(range(1e18)) > 0",
            "[range(infinite)] == []",
            "[limit(1e18; repeat(1))] == []",
            "reduce range(1e18) as $x (0; . + $x) > 0",
            "until(false; .) == 1",
            "[.. as $a | .. as $b | .. as $c | .. as $d | .. as $e | .. as $f | 1] == []",
            "(\"xxxxxxxx\" * 1e12 | length) > 1",
            ".systemVendor.manufacturer *= 100000000000 | true",
            "[[1,2,3,4] | combinations(40)] | length > 1",
            "[limit(100; repeat(9999999999999999999))] | reduce .[] as $x (7; . * . * $x) > 1",
        ] {
            let verdict = ask(query, &host());
            assert_eq!(
                verdict,
                Verdict::Failed("the query takes too many steps".into()),
                "{query}"
            );
        }
    }

    #[test]
    fn questions_that_grow_are_given_up_before_they_fill_the_memory() {
        let texts = format!("\"x\"{} | length > 1", " | . + .".repeat(60));
        let lists = format!("[1]{} == 1", " | [., .]".repeat(60));
        let written = format!("[1]{} | tojson | length > 1", " | [., .]".repeat(60));
        let changed = format!(
            "{} | true",
            vec![".cpu.architecture += .cpu.architecture"; 60].join(" | ")
        );
        for query in [texts, lists, written, changed] {
            let verdict = ask(&query, &host());
            assert_eq!(
                verdict,
                Verdict::Failed("the query takes too many steps".into()),
                "{query}"
            );
        }
    }

    #[test]
    fn questions_that_are_nested_too_deep_fail() {
        for sign in [
            "[", "-", "(", "try ", "{a:", ".a|", "[.]|", "1+", "if ", "not|", ".[",
        ] {
            let deep = format!("{}1", sign.repeat(4095 / sign.len()));
            drop(ask(&deep, &host()));
        }
        assert!(matches!(ask(&"1+".repeat(3000), &host()), Verdict::Failed(_)));
    }

    #[test]
    fn counting_changes_no_answer() {
        for (query, answer) in [
            ("[range(5)] == [0,1,2,3,4]", Verdict::Yes),
            ("[range(5; 0; -2)] == [5,3,1]", Verdict::Yes),
            ("def twice(f): f | f; 3 | twice(. * 2) == 12", Verdict::Yes),
            ("\"ab\" * 3 == \"ababab\"", Verdict::Yes),
            ("{a: 2} | .a *= 4 | .a == 8", Verdict::Yes),
            ("[paths] | length > 10", Verdict::Yes),
            ("del(.disks[0]).disks[0].id == \"sdb\"", Verdict::Yes),
            (
                "(.disks |= map(select(.sizeBytes > 1))).disks | length == 1",
                Verdict::Yes,
            ),
            (
                "with_entries(select(.key == \"cpu\")) | keys == [\"cpu\"]",
                Verdict::Yes,
            ),
            ("[.disks[].sizeBytes] | add == 120000000001", Verdict::Yes),
            ("\"\\(.cpu.count) cpus\" == \"4 cpus\"", Verdict::Yes),
            ("[.disks[] | .id] | join(\",\") == \"sda,sdb\"", Verdict::Yes),
            (
                "reduce .disks[] as $disk (0; . + $disk.sizeBytes) > 1",
                Verdict::Yes,
            ),
            (
                "label $out | foreach .disks[] as $disk (0; . + 1; if . == 2 then true, break $out else empty end)",
                Verdict::Yes,
            ),
            ("[limit(3; repeat(1))] | length == 3", Verdict::Yes),
            ("(try error(\"no\") catch .) == \"no\"", Verdict::Yes),
            (
                ".cpu.flags as [$first, $second] | $second == \"avx2\"",
                Verdict::Yes,
            ),
        ] {
            assert_eq!(ask(query, &host()), answer, "{query}");
        }
    }
}
