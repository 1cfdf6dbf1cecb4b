//! A limit for questions. The language has loops and recursion, and whoever may write an AgentClassification must not be
//! able to stop the operator with one: each step of a question counts, and so does everything it builds.
//!
//! The question ends itself, because ending it from outside is not simpler: a thread cannot be ended, and a process would
//! have to be started, fed and confined for each Agent and each query.

use super::Data;
use jaq_core::box_iter::box_once;
use jaq_core::load::parse::{BinaryOp, Def, Pattern, Term};
use jaq_core::load::{lex::StrPart, parse as read};
use jaq_core::native::{Fun, bome, v};
use jaq_core::ops::Math;
use jaq_core::path::{Part, Path};
use jaq_core::{Cv, Native, ValXs};
use jaq_json::{Num, Val};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::time::{Duration, Instant};

/// Real questions about an inventory take some thousands; these many take a part of a second.
const STEPS: u64 = 250_000;
/// Some steps are long, because what they find goes through all that are still open. A real question takes some
/// milliseconds, also on a machine that has much else to do.
const TIME: Duration = Duration::from_secs(1);
/// The stack of the thread a question is answered on. Only what is used of it is ever there.
pub const STACK_BYTES: usize = 64 << 20;
/// How much of it recursion may use; the rest is for what happens inside of one step.
const RECURSION_BYTES: usize = 32 << 20;
/// Questions are read by recursion, too: this many signs fit on the stack however they are nested.
pub const LONGEST_QUERY: usize = 4096;

/// Thrown when a question goes too far. Nothing in the language can catch it.
pub struct TooFar;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(STEPS) };
    static BOTTOM: Cell<usize> = const { Cell::new(0) };
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// To be called once on the thread, before anything is counted.
pub fn begin() {
    BOTTOM.set(here());
    BEGAN.set(Some(Instant::now()));
}

/// About where the stack ends now.
fn here() -> usize {
    let mark = 0_u8;
    std::ptr::from_ref(&mark).addr()
}

fn spend(steps: u64) {
    let deep = BOTTOM.get().abs_diff(here()) > RECURSION_BYTES;
    let late = BEGAN.get().is_some_and(|began| began.elapsed() > TIME);
    match LEFT.get().checked_sub(steps) {
        Some(left) if !deep && !late => LEFT.set(left),
        _ => resume_unwind(Box::new(TooFar)),
    }
}

/// Counts every part of a value, however often it is shared.
fn weigh(value: &Val) {
    spend(match value {
        Val::Null | Val::Bool(_) | Val::Num(Num::Int(_) | Num::Float(_)) => 1,
        Val::Num(Num::BigInt(number)) => number.bits() / 8,
        Val::Num(Num::Dec(digits)) => digits.len() as u64,
        Val::BStr(text) | Val::TStr(text) => 1 + text.len() as u64 / 8,
        Val::Arr(_) | Val::Obj(_) => 1,
    });
    match value {
        Val::Arr(items) => items.iter().for_each(weigh),
        Val::Obj(items) => items.iter().for_each(|(key, value)| {
            weigh(key);
            weigh(value);
        }),
        Val::Null | Val::Bool(_) | Val::Num(_) | Val::BStr(_) | Val::TStr(_) => {}
    }
}

const STEP: &str = "!step";
const WEIGH: &str = "!weigh";
const TIMES: &str = "!times";
const FACTOR: &str = "$!factor";
/// The language's own, which counts nothing, is left out for this one. It comes before all other definitions.
const RANGE: &str = "def range($from; $to; $by): def rec:
    if ($by > 0 and . < $to) or ($by < 0 and . > $to) or ($by == 0 and . != $to)
    then ., (. + $by | rec) else {}[] end; $from | rec;";

/// What counts, for questions that `count` was applied to.
pub fn funs() -> [Fun<Data>; 3] {
    [
        (STEP, v(0), transparent(Native::<Data>::new(step))),
        (WEIGH, v(0), transparent(Native::<Data>::new(weighed))),
        (TIMES, v(2), Native::<Data>::new(times)),
    ]
}

fn step<'a>(cv: Cv<'a, Data>) -> ValXs<'a, Val> {
    spend(1);
    box_once(Ok(cv.1))
}

fn weighed<'a>(cv: Cv<'a, Data>) -> ValXs<'a, Val> {
    weigh(&cv.1);
    box_once(Ok(cv.1))
}

fn times<'a>(mut cv: Cv<'a, Data>) -> ValXs<'a, Val> {
    let right = cv.0.pop_var();
    let left = cv.0.pop_var();
    spend(length(&left, &right));
    bome(left * right)
}

/// It stands for the value itself, also where that is asked for its place.
fn transparent(native: Native<Data>) -> Native<Data> {
    let native = native.with_paths(|cv| {
        spend(1);
        box_once(Ok(cv.1))
    });
    native.with_update(|cv, change| {
        spend(1);
        change(cv.1)
    })
}

/// What a text becomes when it is repeated; that would be built in one step.
fn length(left: &Val, right: &Val) -> u64 {
    match (left, right) {
        (Val::TStr(text) | Val::BStr(text), Val::Num(times))
        | (Val::Num(times), Val::TStr(text) | Val::BStr(text)) => {
            let times = match times {
                Num::Int(times) => u64::try_from(*times).unwrap_or_default(),
                Num::BigInt(_) | Num::Float(_) | Num::Dec(_) => u64::MAX,
            };
            times.saturating_mul(text.len() as u64) / 8
        }
        _ => 1,
    }
}

pub fn range() -> Vec<Def<&'static str>> {
    read(RANGE, |parser| parser.defs()).unwrap_or_default()
}

/// Makes each step of a question count. Knows the names of what is built in, and how many arguments each takes.
pub struct Counter(pub BTreeSet<(&'static str, usize)>);

impl Counter {
    pub fn def<'s>(&self, def: Def<&'s str>) -> Def<&'s str> {
        let body = before(self.count(def.body));
        Def { body, ..def }
    }

    pub fn count<'s>(&self, term: Term<&'s str>) -> Term<&'s str> {
        match term {
            Term::Id | Term::Recurse | Term::Num(_) | Term::Break(_) | Term::Var(_) => term,
            Term::Str(format, parts) => {
                let part = |part| match part {
                    StrPart::Term(term) => StrPart::Term(self.count(term)),
                    StrPart::Str(_) | StrPart::Char(_) => part,
                };
                after(Term::Str(format, parts.into_iter().map(part).collect()))
            }
            Term::Arr(items) => after(Term::Arr(self.some(items))),
            Term::Obj(pairs) => {
                let pair =
                    |(key, value): (_, Option<_>)| (self.count(key), value.map(|value| self.count(value)));
                after(Term::Obj(pairs.into_iter().map(pair).collect()))
            }
            Term::Neg(term) => Term::Neg(self.boxed(*term)),
            Term::BinOp(left, op, right) => self.operation(self.boxed(*left), op, self.boxed(*right)),
            Term::Label(name, term) => Term::Label(name, self.boxed(*term)),
            Term::Fold(kind, over, pattern, terms) => {
                let terms = terms.into_iter().map(|term| before(self.count(term)));
                Term::Fold(kind, self.boxed(*over), pattern, terms.collect())
            }
            Term::TryCatch(term, caught) => Term::TryCatch(self.boxed(*term), self.some(caught)),
            Term::IfThenElse(cases, otherwise) => {
                let case = |(when, then)| (self.count(when), self.count(then));
                Term::IfThenElse(cases.into_iter().map(case).collect(), self.some(otherwise))
            }
            Term::Def(defs, term) => {
                let defs = defs.into_iter().map(|def| self.def(def));
                Term::Def(defs.collect(), self.boxed(*term))
            }
            Term::Call(name, arguments) => {
                let names: &BTreeSet<(&'s str, usize)> = &self.0;
                let built_in = names.contains(&(name, arguments.len()));
                let call = Term::Call(name, arguments.into_iter().map(|term| self.count(term)).collect());
                // What is defined in the language counts in its body.
                if built_in { after(call) } else { call }
            }
            Term::Path(term, path) => before(Term::Path(self.boxed(*term), self.path(path))),
        }
    }

    fn operation<'s>(
        &self,
        left: Box<Term<&'s str>>,
        op: BinaryOp<&'s str>,
        right: Box<Term<&'s str>>,
    ) -> Term<&'s str> {
        match op {
            BinaryOp::Pipe(_)
            | BinaryOp::Comma
            | BinaryOp::Alt
            | BinaryOp::Or
            | BinaryOp::And
            | BinaryOp::Cmp(_) => before(Term::BinOp(left, op, right)),
            BinaryOp::Math(Math::Mul) => after(Term::Call(TIMES, vec![*left, *right])),
            BinaryOp::UpdateMath(Math::Mul) => {
                let product = Term::Call(TIMES, vec![Term::Id, Term::Var(FACTOR)]);
                let update = Term::BinOp(left, BinaryOp::Update, Box::new(product));
                let bind = BinaryOp::Pipe(Some(Pattern::Var(FACTOR)));
                after(Term::BinOp(right, bind, Box::new(update)))
            }
            BinaryOp::Math(_)
            | BinaryOp::Assign
            | BinaryOp::Update
            | BinaryOp::UpdateMath(_)
            | BinaryOp::UpdateAlt => after(Term::BinOp(left, op, right)),
        }
    }

    fn path<'s>(&self, path: Path<Term<&'s str>>) -> Path<Term<&'s str>> {
        let part = |part| match part {
            Part::Index(term) => Part::Index(self.count(term)),
            Part::Range(from, to) => {
                Part::Range(from.map(|term| self.count(term)), to.map(|term| self.count(term)))
            }
        };
        Path(path.0.into_iter().map(|(one, opt)| (part(one), opt)).collect())
    }

    fn boxed<'s>(&self, term: Term<&'s str>) -> Box<Term<&'s str>> {
        Box::new(self.count(term))
    }

    fn some<'s>(&self, term: Option<Box<Term<&'s str>>>) -> Option<Box<Term<&'s str>>> {
        term.map(|term| self.boxed(*term))
    }
}

fn before(term: Term<&str>) -> Term<&str> {
    pipe(Term::Call(STEP, Vec::new()), term)
}

fn after(term: Term<&str>) -> Term<&str> {
    pipe(term, Term::Call(WEIGH, Vec::new()))
}

fn pipe<'s>(left: Term<&'s str>, right: Term<&'s str>) -> Term<&'s str> {
    Term::BinOp(Box::new(left), BinaryOp::Pipe(None), Box::new(right))
}
