//! `kube-leader-election` at work: two candidates, one leader, and the other one after it steps down.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::Client;
use kube_leader_election::{LeaseLock, LeaseLockParams};

const LEASE: &str = "election";
const TRIES_MAX: usize = 100;

#[tokio::main]
async fn main() -> Result<()> {
    let client = Client::try_default().await?;
    let [one, other] = ["one", "other"].map(|holder| {
        let parameters = LeaseLockParams {
            holder_id: holder.into(),
            lease_name: LEASE.into(),
            lease_ttl: Duration::from_secs(15),
        };
        LeaseLock::new(client.clone(), "default", parameters)
    });
    ensure!(leads(&one).await?, "the first candidate leads");
    ensure!(!leads(&other).await?, "the second one has to wait");
    ensure!(leads(&one).await?, "the leader renews");
    one.step_down().await?;
    ensure!(comes_to_lead(&other).await?, "the second one follows");
    ensure!(!leads(&one).await?, "and the first one waits");
    println!("one leader at a time, and the next one after it stepped down");
    Ok(())
}

/// A lease that was given back runs out a second later.
async fn comes_to_lead(lock: &LeaseLock) -> Result<bool> {
    for _ in 0..TRIES_MAX {
        if leads(lock).await? {
            return Ok(true);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(false)
}

async fn leads(lock: &LeaseLock) -> Result<bool> {
    let held = lock.try_acquire_or_renew().await?;
    Ok(matches!(
        held,
        kube_leader_election::LeaseLockResult::Acquired(_)
    ))
}
