//! Rules of before, each of which broke a promise. The simulator puts them back and has to notice; a shipped
//! build has no way to.

/// A rule of before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lapse {
    /// A bound that is over ends the stopping, whether or not Ray was told.
    GivesUpUntried,
    /// An attempt begins when the cluster of the last one is gone, whatever its pods do.
    BeginsBesidePods,
    /// A spec that is refused is obeyed.
    ObeysFlaws,
    /// A job is suspended without asking what became of it.
    SuspendsUnasked,
    /// What the user submitted is not stopped before Ray was heard about it.
    ForgetsInteractive,
    /// One failure of Ray ends what a bound would end, though the machine slept through most of that.
    BelievesOneFailure,
    /// One failed submission ends what a bound would end, the same.
    BelievesOneSubmission,
    /// A submitter whose deletion fails without a refusal is waited for, for ever.
    AwaitsSubmitter,
    /// A service that cannot be made is tried with every look at the job.
    ServiceHoldsUp,
    /// Whose a cluster is says the selector of now.
    TrustsSelector,
    /// A job whose selector is taken away has no cluster any more.
    LosesGuests,
    /// A job that ran when its spec was refused is judged by the time that it had to begin.
    JudgesMended,
    /// An interactive job waits for its user though its cluster is gone.
    WaitsWithoutCluster,
    /// A cluster without a name is looked for.
    ReadsNoName,
}

impl super::RayJobs {
    /// The same with a rule of before.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn lapsed(mut self, lapse: Lapse) -> Self {
        self.lapse = Some(lapse);
        self
    }

    /// Whether a rule of before is back.
    pub(super) fn lapses(&self, lapse: Lapse) -> bool {
        self.lapse == Some(lapse)
    }
}
