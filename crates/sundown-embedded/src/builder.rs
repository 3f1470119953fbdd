//! What an embedded control plane is made of, and its start.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use kube::Client;
use sundown_api::Authorization;
use sundown_decide::rights::Rights;
use sundown_decide::{Jobs, Pods, RayConfig, ServiceNames};
use sundown_driver::controllers::{OWNER_GC, Selection};
use sundown_driver::{Dashboards, Driver, DriverHandle, Ports, Recorder, RecorderError};
use sundown_model::{Controller as _, Resource};
use sundown_node::environment::{Environments, RuleError, Rules};
use sundown_server::{
    ApiService, Clock, Credential, Entropy, Front, Https, HttpsError, IdentityError, ManualClock,
    Shared, SystemClock, Tasks,
};

use crate::data::Data;
use crate::definitions;
use crate::embedded::{Door, Embedded};
use crate::identities::{Identity, grant, keep_granted};
use crate::kubeconfig::{KubeconfigError, KubeconfigFile};
use crate::machine::egress::{self, Egress};
use crate::machine::{Link, Logs, Machine, Parts, arrivals, over_panics};
use crate::node::NodeOptions;
use crate::ports::{CommitBarrier, SameClock};

/// Chooses what [`Embedded`] consists of.
#[derive(Debug, Clone)]
pub struct Builder {
    controllers: Selection,
    garbage_collector: bool,
    authorization: Authorization,
    listen: Option<Listen>,
    manual_from: Option<Timestamp>,
    flight_record: Option<PathBuf>,
    data: Option<Data>,
    node: Option<NodeOptions>,
    ray: RayConfig,
}

/// Where HTTPS listens and who is told how to get in.
#[derive(Debug, Clone)]
pub struct Listen {
    pub address: SocketAddr,
    /// Where the kubeconfig goes, to each of these places.
    pub kubeconfigs: Vec<PathBuf>,
}

impl Default for Listen {
    /// Any free port of this machine, no kubeconfig.
    fn default() -> Self {
        Self {
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            kubeconfigs: Vec::new(),
        }
    }
}

/// Why a control plane did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Certificates could not be made.
    #[error("make the server's identity")]
    Identity(#[from] IdentityError),
    /// HTTPS could not be set up.
    #[error("start HTTPS")]
    Https(#[from] HttpsError),
    /// The way in could not be written down.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// The flight cannot be recorded.
    #[error(transparent)]
    Recorder(#[from] RecorderError),
    /// The data directory is refused.
    #[error(transparent)]
    Data(#[from] sundown_disk::OpenError),
    /// The directory has data, but nobody is known who could serve it.
    #[error("{} is missing: kubeconfigs and tokens could not stay valid", path.display())]
    IdentityGone { path: PathBuf },
    /// A durable server did not start.
    #[error("start on the data directory")]
    Durable(#[from] sundown_server::OpenError),
    /// The rules about images are malformed.
    #[error(transparent)]
    ImageRules(#[from] RuleError),
    /// The definitions of Ray's and Volcano's kinds were not taken.
    #[error("install the definitions of the kinds of Ray and Volcano")]
    Definitions(#[source] Box<kube::Error>),
    /// The roles of the controllers and the node were not taken.
    #[error("store the rights of the controllers and of the node")]
    Rights(#[source] Box<kube::Error>),
    /// This machine could not be made known as a node.
    #[error("register this machine as a node")]
    Node(#[source] Box<kube::Error>),
    /// The server did not answer a first list.
    #[error("list namespaces")]
    FirstList(#[source] Box<kube::Error>),
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            controllers: Selection::all(),
            garbage_collector: true,
            authorization: Authorization::default(),
            listen: None,
            manual_from: None,
            flight_record: None,
            data: None,
            node: None,
            ray: RayConfig::default(),
        }
    }
}

impl Builder {
    /// Which controllers run; all of them if nothing is said.
    #[must_use]
    pub fn controllers(self, controllers: Selection) -> Self {
        Self {
            controllers,
            ..self
        }
    }

    /// Who may do what; by roles and bindings if nothing is said.
    #[must_use]
    pub fn authorization(self, authorization: Authorization) -> Self {
        Self {
            authorization,
            ..self
        }
    }

    /// False: the server adds no collector finalizers and `owner_gc` does not run. Leaving out only
    /// the controller keeps the finalizers, for a collector of somebody else.
    #[must_use]
    pub fn garbage_collector(self, garbage_collector: bool) -> Self {
        Self {
            garbage_collector,
            ..self
        }
    }

    /// Listens for HTTPS too.
    #[must_use]
    pub fn listen(self, listen: Listen) -> Self {
        let listen = Some(listen);
        Self { listen, ..self }
    }

    /// Stops time at this instant; [`Embedded::advance`] moves it.
    #[must_use]
    pub fn manual_clock(self, from: Timestamp) -> Self {
        let manual_from = Some(from);
        Self {
            manual_from,
            ..self
        }
    }

    /// Records the flight of the controllers in this directory.
    #[must_use]
    pub fn flight_record(self, directory: impl Into<PathBuf>) -> Self {
        let flight_record = Some(directory.into());
        Self {
            flight_record,
            ..self
        }
    }

    /// Keeps everything in a directory; in memory if nothing is said.
    #[must_use]
    pub fn data(self, data: Data) -> Self {
        let data = Some(data);
        Self { data, ..self }
    }

    /// Runs pods as processes of this machine; without it they stay pending.
    #[must_use]
    pub fn node(self, node: NodeOptions) -> Self {
        let node = Some(node);
        Self { node, ..self }
    }

    /// What the controllers of Ray are told; the usual if nothing is said.
    #[must_use]
    pub fn ray(self, ray: RayConfig) -> Self {
        Self { ray, ..self }
    }

    /// Starts it, and returns when a first list has been answered.
    ///
    /// Assumes: a tokio runtime with time and, for HTTPS, network.
    pub async fn start(self) -> Result<Embedded, StartError> {
        let begun_at = Instant::now();
        let manual = self
            .manual_from
            .map(|from| Arc::new(ManualClock::new(from)));
        let clock: Arc<dyn Clock> = match &manual {
            Some(manual) => Arc::clone(manual) as _,
            None => Arc::new(SystemClock),
        };
        let link = self.node.as_ref().map(link);
        let (shared, identity) = self.open(&clock, link.as_deref())?;
        let shared = Arc::new(match &link {
            Some(link) => shared.logging_from(Arc::new(Logs(Arc::clone(link)))),
            None => shared,
        });
        let mut tasks = Tasks::new();
        let service = ApiService::trusted(Arc::clone(&shared), tasks.signal());
        let client = Client::new(service, "default");
        let Acting { controllers, node } = self.identify(&shared, &client, &mut tasks).await?;
        let mut door = None;
        if let (Some(listen), Some(identity)) = (&self.listen, &identity) {
            let data = self.data.as_ref();
            door = Some(open_door(listen, data, identity, &shared, &mut tasks).await?);
        }
        let mut authority = String::new();
        if let (Some(link), Some(identity)) = (&link, &identity) {
            identity.ca_pem().clone_into(&mut authority);
            let front = Front::new(Arc::clone(&shared), identity)?;
            tasks.spawn("door of pods", front.serve(arrivals(link), tasks.signal()));
        }
        watch_over(&shared, &mut tasks);
        let machine = match (&self.node, link) {
            (Some(options), Some(link)) => {
                if options.egress {
                    let egress = Egress::of_host(options.egress_credentials);
                    offer_egress(egress, Arc::clone(&link), &mut tasks);
                }
                Some(Arc::new(machine(options, link, node, authority)?))
            }
            _ => None,
        };
        if let (Some(machine), Some(options)) = (&machine, &self.node) {
            let installed = definitions::install(&client).await;
            installed.map_err(|error| StartError::Definitions(Box::new(error)))?;
            let registered = machine.register(&client, options.offers, clock.now()).await;
            registered.map_err(|error| StartError::Node(Box::new(error)))?;
        }
        let hands = machine.clone();
        let driver = self.start_controllers(&shared, clock, controllers, hands, &mut tasks)?;
        answer_first_list(&client).await?;
        Ok(Embedded {
            shared,
            client,
            driver,
            tasks,
            door,
            manual,
            start_time: begun_at.elapsed(),
            machine,
        })
    }

    /// Gives controllers and node their rights, and a client of their own each.
    async fn identify(
        &self,
        shared: &Arc<Shared>,
        client: &Client,
        tasks: &mut Tasks,
    ) -> Result<Acting, StartError> {
        let controllers = Identity::of_controllers(&self.rights());
        let node = Identity::of_node();
        let acting = [Some(&controllers), self.node.as_ref().map(|_| &node)];
        let acting: Vec<Identity> = acting.into_iter().flatten().cloned().collect();
        let granted = grant(client, &acting).await;
        granted.map_err(|error| StartError::Rights(Box::new(error)))?;
        let kept = keep_granted(Arc::clone(shared), client.clone(), acting, tasks.signal());
        tasks.spawn("rights of our own", kept);
        let acting_as = |identity: &Identity| {
            let user = identity.user();
            let service = ApiService::acting_as(Arc::clone(shared), tasks.signal(), user);
            Client::new(service, "default")
        };
        Ok(Acting {
            controllers: acting_as(&controllers),
            node: acting_as(&node),
        })
    }

    /// The state, and the identity if somebody from outside may come.
    fn open(
        &self,
        clock: &Arc<dyn Clock>,
        link: Option<&Link>,
    ) -> Result<(Shared, Option<sundown_server::Identity>), StartError> {
        let config = sundown_api::Config {
            garbage_collector: self.garbage_collector,
            authorization: self.authorization,
            acted_on: self.acted_on(),
            definitions: match &self.node {
                Some(_) => definitions::first,
                None => Vec::new,
            },
            ..sundown_api::Config::default()
        };
        let bridge = link.map(|link| link.bridge().to_string());
        let names: Vec<String> = bridge.into_iter().collect();
        if let Some(data) = &self.data {
            let (shared, identity) = data.open(config, Arc::clone(clock), &names)?;
            return Ok((shared, Some(identity)));
        }
        let shared = Shared::new(config, Arc::clone(clock), Entropy::system());
        if self.listen.is_none() && link.is_none() {
            return Ok((shared, None));
        }
        Ok((shared, Some(sundown_server::Identity::generate(&names)?)))
    }

    /// What the controllers of a node act on, of that which a server alone only stores.
    fn acted_on(&self) -> Vec<Resource> {
        let of_node = [
            (Pods::NAME, ("", "pods")),
            (Jobs::NAME, ("batch", "jobs")),
            (ServiceNames::NAME, ("", "services")),
        ];
        let runs = |name: &str| self.node.is_some() && self.controllers.contains(name);
        let acting = of_node.into_iter().filter(|(name, _)| runs(name));
        acting
            .map(|(_, (group, plural))| Resource::new(group, plural))
            .collect()
    }

    /// The controllers that run.
    fn selection(&self) -> Selection {
        let selection = self.controllers.clone();
        if self.garbage_collector {
            selection
        } else {
            selection.without(OWNER_GC)
        }
    }

    fn rights(&self) -> Rights {
        self.selection().rights(self.node.is_some())
    }

    fn start_controllers(
        self,
        shared: &Arc<Shared>,
        clock: Arc<dyn Clock>,
        client: Client,
        machine: Option<Arc<Machine>>,
        tasks: &mut Tasks,
    ) -> Result<DriverHandle, StartError> {
        let controllers = self.selection();
        let config = sundown_engine::Config::default();
        let engine = match &machine {
            Some(_) => controllers.engine_with_node(config, &self.ray),
            None => controllers.engine_with_server(config),
        };
        let mut driver = Driver::new(engine, client)
            .clock(Arc::new(SameClock(clock)))
            .barrier(Arc::new(CommitBarrier(Arc::clone(shared))));
        if let Some(machine) = machine {
            let ray = Dashboards::new(machine.way_in());
            driver = driver.ports(Ports::default().ray(Arc::new(ray)).node(machine));
        }
        if let Some(directory) = &self.flight_record {
            driver = driver.recorder(Recorder::create(directory)?);
        }
        let handle = driver.handle();
        shared.register_metrics(|registry| handle.register_metrics(registry));
        let (stop, ending) = (tasks.signal(), handle.clone());
        tasks.spawn("controllers", async move {
            let run = driver.run();
            tokio::pin!(run);
            tokio::select! {
                () = &mut run => return Ok::<(), Infallible>(()),
                () = stop.asked() => ending.shutdown(),
            }
            run.await;
            Ok(())
        });
        Ok(handle)
    }
}

/// The clients of those who act by themselves, each with its own rights.
struct Acting {
    controllers: Client,
    node: Client,
}

fn link(node: &NodeOptions) -> Arc<Link> {
    let config = sundown_node::Config::new(&node.directory, &node.program);
    Arc::new(Link::new(config))
}

/// The way out lives as long as the control plane.
fn offer_egress(egress: Egress, link: Arc<Link>, tasks: &mut Tasks) {
    let stop = tasks.signal();
    tasks.spawn("egress", async move {
        tokio::select! {
            () = over_panics("egress", || egress::serve(egress.clone(), Arc::clone(&link))) => {}
            () = stop.asked() => {}
        }
        Ok::<(), String>(())
    });
}

fn machine(
    node: &NodeOptions,
    link: Arc<Link>,
    client: Client,
    authority: String,
) -> Result<Machine, StartError> {
    let rules = Rules::read(&node.image_rules)?;
    Ok(Machine::new(Parts {
        link,
        environments: Environments::new(node.environments.clone(), rules)
            .limited(node.environment_limits)
            .hiding(node.hidden.clone()),
        egress: node
            .egress
            .then(|| Egress::of_host(node.egress_credentials)),
        closed: node.closed.clone().resolved(),
        client,
        authority,
    }))
}

async fn open_door(
    listen: &Listen,
    data: Option<&Data>,
    identity: &sundown_server::Identity,
    shared: &Arc<Shared>,
    tasks: &mut Tasks,
) -> Result<Door, StartError> {
    let https = match data {
        Some(data) => data.bind(listen, shared, identity).await?,
        None => Https::bind(Arc::clone(shared), identity, listen.address).await?,
    };
    let url = https.url();
    let content = identity.kubeconfig(&url, Credential::Token);
    tasks.spawn("https", https.serve(tasks.signal()));
    let write = |path: &PathBuf| KubeconfigFile::write(path, content.clone());
    let files = listen.kubeconfigs.iter().map(write);
    let files = files.collect::<Result<Vec<_>, _>>()?;
    Ok(Door {
        url,
        kubeconfig: content,
        files,
    })
}

/// A commit that broke an invariant ends everything, also without HTTPS.
fn watch_over(shared: &Arc<Shared>, tasks: &mut Tasks) {
    let (shared, stop) = (Arc::clone(shared), tasks.signal());
    tasks.spawn("commits", async move {
        tokio::select! {
            cause = shared.broken() => Err(format!("a commit failed: {cause}")),
            () = stop.asked() => Ok(()),
        }
    });
}

async fn answer_first_list(client: &Client) -> Result<(), StartError> {
    let request = http::Request::get("/api/v1/namespaces?limit=1").body(Vec::new());
    let request = request.expect("the address is a constant");
    match client.request_text(request).await {
        Ok(_) => Ok(()),
        Err(error) => Err(StartError::FirstList(Box::new(error))),
    }
}
