//! `sundown explain`: asks the controllers of a control plane that is up about one object; where there is none of
//! ours, asks the shipped controllers themselves, with their brakes on.

mod gone;
mod look;
mod print;

use std::process::ExitCode;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sundown_driver::{Connection, Driver, DriverHandle, controllers::Selection};
use sundown_engine::{Brake, Config};
use sundown_model::ObjectKey;

use crate::arguments::{Explain, Output};
use crate::complaint::Complaint;
use crate::control::ControlError;
use crate::kubectl::{Kubectl, Sundown};
use crate::{control, data};

pub(crate) use look::{Answer, answer};

/// How long the controllers may take to look around. A cluster of 100,000 objects takes seconds.
const LOOK_TIME_MAX: Duration = Duration::from_mins(1);

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wanted {
    word: String,
    name: String,
    /// None: the usual one of whoever is asked.
    namespace: Option<String>,
}

/// Explains an object, or says why it went.
pub(crate) async fn run(arguments: &Explain, output: Output) -> Result<ExitCode, Complaint> {
    let wanted = Wanted::read(arguments)?;
    let answered = match from_inside(arguments, &wanted).await? {
        Some(answered) => answered,
        None => from_outside(arguments, &wanted).await?,
    };
    let Answered {
        place,
        kubectl,
        answer,
    } = answered;
    match answer {
        Answer::Told(told) => {
            print::tell(&told, output)?;
            Ok(ExitCode::SUCCESS)
        }
        Answer::UnknownType { known } => Err(Complaint::usage(format!(
            "the API server has no type {:?}",
            wanted.word
        ))
        .at(place)
        .help(format!("types that can be explained: {}", known.join(", ")))),
        Answer::Unseen { resource } => {
            let error = format!("nothing is known of {resource}");
            let complaint = Complaint::new(error).at(place);
            Err(complaint
                .help("no controller looks at them, or the user of the kubeconfig may not list and watch them"))
        }
        Answer::Missing { key } => {
            let complaint = Complaint::new(format!("{key} is not there")).at(place);
            missing(&key, complaint, &kubectl, arguments, output)
        }
    }
}

impl Wanted {
    fn read(arguments: &Explain) -> Result<Self, Complaint> {
        let parts = arguments.object.split_once('/');
        let parts = parts.filter(|(word, name)| !word.is_empty() && !name.is_empty());
        let (word, name) = parts.ok_or_else(|| {
            Complaint::usage(format!("{:?} does not name an object", arguments.object))
                .at("TYPE/NAME")
                .help("write the type and the name with a slash between: jobs/report")
        })?;
        Ok(Self {
            word: word.to_owned(),
            name: name.to_owned(),
            namespace: arguments.namespace.clone(),
        })
    }

    fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("default")
    }
}

/// Who answered, and what.
struct Answered {
    place: String,
    /// By which a person goes on looking.
    kubectl: Kubectl,
    answer: Answer,
}

/// Asks the control plane of the data directory, also where that is named by its kubeconfig: those who decide there
/// know what the node and Ray said. None: another API server is meant, or one that cannot be asked that way.
async fn from_inside(arguments: &Explain, wanted: &Wanted) -> Result<Option<Answered>, Complaint> {
    let told = arguments.kubeconfig.as_deref();
    let data = match told {
        None => data::directory(arguments.data_dir.as_deref())?,
        Some(told) => match told.parent() {
            Some(data) if told == data::kubeconfig(data) => data.to_owned(),
            Some(_) | None => return Ok(None),
        },
    };
    let state = match data::find(&data) {
        Ok(state) => state,
        // A file of this name may lie anywhere.
        Err(_) if told.is_some() => return Ok(None),
        Err(complaint) => return Err(complaint),
    };
    let wanted = Wanted {
        namespace: namespace(arguments).await,
        ..wanted.clone()
    };
    let answered = match state {
        Some(state) => control::explained(&state, wanted).await,
        None => Err(ControlError::NotUp),
    };
    match answered {
        Ok(answer) => Ok(Some(Answered {
            place: data.display().to_string(),
            kubectl: Kubectl::of_data(&data),
            answer,
        })),
        Err(_) if told.is_some() => Ok(None),
        Err(error @ ControlError::NotUp) => Err(error
            .complaint(&data)
            .help(format!(
                "start it: {}",
                Sundown::of(arguments.data_dir.as_deref()).command("up")
            ))
            .help("or name the kubeconfig of another API server: --kubeconfig PATH")),
        Err(error @ ControlError::Silent(_)) => Err(Complaint::of(&error)
            .at(data.display().to_string())
            .help("it may have much to do: try again")),
        Err(error) => Err(error.complaint(&data)),
    }
}

/// The namespace that was told, else that of a kubeconfig that was told.
async fn namespace(arguments: &Explain) -> Option<String> {
    let told = arguments.kubeconfig.as_deref();
    if arguments.namespace.is_some() || told.is_none() {
        return arguments.namespace.clone();
    }
    let connection = sundown_driver::connect(told).await.ok()?;
    Some(connection.namespace)
}

/// Lets the shipped controllers look at an API server, with their brakes on.
async fn from_outside(arguments: &Explain, wanted: &Wanted) -> Result<Answered, Complaint> {
    let connection = sundown_driver::connect(arguments.kubeconfig.as_deref()).await;
    let connection = connection
        .map_err(|error| Complaint::of(&error).help("name a kubeconfig: --kubeconfig PATH"))?;
    check_reachable(&connection).await?;
    let usual = || connection.namespace.clone();
    let wanted = Wanted {
        namespace: Some(wanted.namespace.clone().unwrap_or_else(usual)),
        ..wanted.clone()
    };
    Ok(Answered {
        place: connection.url.clone(),
        kubectl: Kubectl::with(arguments.kubeconfig.as_deref()),
        answer: look_around(&wanted, connection).await?,
    })
}

/// The engine would go on trying for ever; a person wants to know at once.
async fn check_reachable(connection: &Connection) -> Result<(), Complaint> {
    let request = http::Request::get("/api").body(Vec::new());
    let request = request.expect("the address is a constant");
    match connection.client.request_text(request).await {
        Ok(_) => Ok(()),
        Err(error) => Err(Complaint::new("cannot connect to the API server")
            .at(connection.url.clone())
            .because(&error)
            .help("is it running, and is this its kubeconfig?")),
    }
}

async fn look_around(wanted: &Wanted, connection: Connection) -> Result<Answer, Complaint> {
    // Those that an operator runs on any cluster: a node and Ray are the business of others there.
    let engine = Selection::all().engine(Config::default());
    let driver = Driver::new(engine, connection.client).brake(Brake::everything());
    let handle = driver.handle();
    tokio::select! {
        () = driver.run() => {
            Err(Complaint::new("the controllers ended before they could answer"))
        }
        answer = ask(handle, wanted.clone()) => answer.map_err(|error| {
            Complaint::of(&error).at(connection.url).help("SUNDOWN_LOG=debug shows what they wait for")
        }),
    }
}

async fn ask(handle: DriverHandle, wanted: Wanted) -> Result<Answer, sundown_driver::WaitError> {
    handle.wait_until_at_rest(LOOK_TIME_MAX).await?;
    let answer = handle.ask(move |engine, now| look::answer(engine, now, &wanted));
    Ok(answer.await?)
}

fn missing(
    key: &ObjectKey,
    complaint: Complaint,
    kubectl: &Kubectl,
    arguments: &Explain,
    output: Output,
) -> Result<ExitCode, Complaint> {
    let Some(directory) = arguments.flight_record.as_deref() else {
        let namespace = key.namespace.as_ref().map(ToString::to_string);
        let resource = key.resource.to_string();
        let list = kubectl.command("get", namespace.as_deref(), &[&resource]);
        return Err(complaint
            .help(format!("see what is there: {list}"))
            .help("a flight record may tell why it went: --flight-record DIR"));
    };
    let traces = gone::traces(directory, key)?;
    if traces.is_empty() {
        return Err(complaint.help(format!(
            "the record in {} does not know it",
            directory.display()
        )));
    }
    print::tell_gone(key, &traces, output)?;
    Err(complaint)
}
