//! `sundown explain`: asks the shipped controllers about one object, with their brakes on.

mod gone;
mod look;
mod print;

use std::process::ExitCode;
use std::time::Duration;

use sundown_driver::{Connection, Driver, DriverHandle, controllers::Selection};
use sundown_engine::{Brake, Config};
use sundown_model::ObjectKey;

use crate::arguments::{Explain, Output};
use crate::complaint::Complaint;
use crate::kubectl::Kubectl;

use look::Answer;

/// How long the controllers may take to look around. A cluster of 100,000 objects takes seconds.
const LOOK_TIME_MAX: Duration = Duration::from_mins(1);

/// What was asked for.
#[derive(Debug, Clone)]
struct Wanted {
    word: String,
    name: String,
    namespace: String,
}

/// Explains an object, or says why it went.
pub(crate) async fn run(arguments: &Explain, output: Output) -> Result<ExitCode, Complaint> {
    let connection = sundown_driver::connect(arguments.kubeconfig.as_deref()).await;
    let connection = connection.map_err(|error| {
        Complaint::of(&error).help("name a kubeconfig by --kubeconfig PATH or $KUBECONFIG")
    })?;
    let wanted = Wanted::read(arguments, &connection)?;
    check_reachable(&connection).await?;
    let place = connection.url.clone();
    match look_around(&wanted, connection).await? {
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
        Answer::Missing { key } => missing(&key, place, arguments, output),
    }
}

impl Wanted {
    fn read(arguments: &Explain, connection: &Connection) -> Result<Self, Complaint> {
        let parts = arguments.object.split_once('/');
        let parts = parts.filter(|(word, name)| !word.is_empty() && !name.is_empty());
        let (word, name) = parts.ok_or_else(|| {
            Complaint::usage(format!("{:?} does not name an object", arguments.object))
                .at("TYPE/NAME")
                .help("write the type and the name with a slash between: jobs/report")
        })?;
        let namespace = arguments.namespace.as_ref();
        Ok(Self {
            word: word.to_owned(),
            name: name.to_owned(),
            namespace: namespace.unwrap_or(&connection.namespace).clone(),
        })
    }
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
    place: String,
    arguments: &Explain,
    output: Output,
) -> Result<ExitCode, Complaint> {
    let complaint = Complaint::new(format!("{key} is not there")).at(place);
    let Some(directory) = arguments.flight_record.as_deref() else {
        let kubectl = Kubectl::with(arguments.kubeconfig.as_deref());
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
