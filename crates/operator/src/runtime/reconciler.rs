//! The form of a controller: read a snapshot, plan without touching anything, apply the plan, and again.
//!
//! A round that plans nothing is the last, so reconciling an unchanged snapshot cannot write.

use super::{Context, Next};
use crate::error::Error;
use muster_contract::ClientError;
use std::fmt::Display;
use std::time::Duration;

/// What is done in one round.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<Step> {
    pub steps: Vec<Step>,
    pub then: Then,
}

/// Nothing to do.
impl<Step> Default for Plan<Step> {
    fn default() -> Self {
        Self::of(Vec::new(), Then::Rest)
    }
}

impl<Step> Plan<Step> {
    pub fn of(steps: Vec<Step>, then: Then) -> Self {
        Self { steps, then }
    }
}

/// What follows the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Then {
    /// The steps change what the next ones depend on.
    Again,
    #[default]
    Rest,
    After(Duration),
}

impl Then {
    /// Whatever comes first.
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Again, _) | (_, Self::Again) => Self::Again,
            (Self::Rest, then) | (then, Self::Rest) => then,
            (Self::After(one), Self::After(two)) => Self::After(one.min(two)),
        }
    }
}

/// The snapshot that a controller decides on about one object.
pub trait Reconcile: Sized + Send + Sync {
    /// Where it stands, such as the key of the object.
    type Place: Display + Sync;
    type Step: Send + Sync;
    /// Why a step was not carried out, as far as the next snapshot needs it.
    type Failure: Send;

    /// The object in a sentence, with its article.
    const OBJECT: &'static str;
    /// Whoever needs more rounds than this in a row goes round in circles.
    const MOST_ROUNDS: usize;

    /// `None` when there is nothing to decide about.
    fn read(
        ctx: &Context,
        place: &Self::Place,
        failure: Option<Self::Failure>,
    ) -> impl Future<Output = Result<Option<Self>, Error>> + Send;

    /// Pure.
    fn plan(&self) -> Plan<Self::Step>;

    /// Carries out one step. The outer error ends the reconciliation, the inner one is part of the next snapshot.
    fn apply(
        &self,
        ctx: &Context,
        step: &Self::Step,
    ) -> impl Future<Output = Result<Result<(), Self::Failure>, Error>> + Send;
}

/// Writes down what the hub was asked to do, and gives the answer back. By its name only: requests carry secrets.
pub fn logged<T>(
    key: &impl Display,
    deed: &'static str,
    answer: Result<T, ClientError>,
) -> Result<T, ClientError> {
    match &answer {
        Ok(_) => tracing::info!(%key, deed, "the hub accepted the request"),
        Err(error) => tracing::info!(%key, deed, %error, "the hub did not accept the request"),
    }
    answer
}

/// Reconciles until there is nothing more to do.
pub async fn run<S: Reconcile>(ctx: &Context, place: &S::Place) -> Result<Next, Error> {
    let mut failure = None;
    for _ in 0..S::MOST_ROUNDS {
        let Some(snapshot) = S::read(ctx, place, failure.take()).await? else {
            return Ok(Next::Rest);
        };
        let plan = snapshot.plan();
        for step in &plan.steps {
            if let Err(cause) = snapshot.apply(ctx, step).await? {
                // What was not done is part of the next snapshot; the rest of this plan is void.
                failure = Some(cause);
                break;
            }
        }
        match (plan.then, &failure) {
            (Then::Again, _) | (_, Some(_)) => {}
            (Then::Rest, None) => return Ok(Next::Rest),
            (Then::After(delay), None) => return Ok(Next::After(delay)),
        }
    }
    tracing::warn!(key = %place, "{} does not converge: every reconcile plans another change", S::OBJECT);
    Ok(Next::After(ctx.retry))
}
