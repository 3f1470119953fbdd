//! Programs that say they are a Python, and count how often they are asked.

use std::fs;

use anyhow::Result;

use super::*;

/// A program that answers as Python 3.11 and leaves a line for each question.
fn a_python(directory: &Path) -> Result<PathBuf> {
    let program = directory.join("python3.11");
    let answer = serde_json::json!({
        "version": [3, 11], "executable": program, "prefix": directory,
    });
    let asked = directory.join("asked");
    let script = format!(
        "#!/bin/sh\necho x >> {}\necho '{answer}'\n",
        asked.display()
    );
    sundown_testing::write_program(&program, &script)?;
    Ok(program)
}

fn times_asked(directory: &Path) -> usize {
    let lines = fs::read_to_string(directory.join("asked")).unwrap_or_default();
    lines.lines().count()
}

async fn answered(known: &Known, program: &Path) {
    assert!(known.fitting(program, (3, 11)).await.is_some());
}

#[tokio::test]
async fn an_interpreter_is_asked_once_until_it_is_touched() -> Result<()> {
    let home = tempfile::tempdir()?;
    let program = a_python(home.path())?;
    let known = Known::default();
    answered(&known, &program).await;
    for _ in 0..3 {
        let python = known.fitting(&program, (3, 11)).await;
        assert_eq!(python.map(|it| it.version), Some((3, 11)));
        assert_eq!(known.fitting(&program, (3, 12)).await, None);
    }
    assert_eq!(times_asked(home.path()), 1);
    // Not open for writing, or it would be busy for a moment.
    fs::File::open(&program)?.set_modified(SystemTime::UNIX_EPOCH)?;
    answered(&known, &program).await;
    assert_eq!(times_asked(home.path()), 2);
    Ok(())
}

#[tokio::test]
async fn an_interpreter_that_is_gone_is_not_remembered() -> Result<()> {
    let home = tempfile::tempdir()?;
    let program = a_python(home.path())?;
    let known = Known::default();
    answered(&known, &program).await;
    fs::rename(&program, home.path().join("elsewhere"))?;
    assert_eq!(known.fitting(&program, (3, 11)).await, None);
    Ok(())
}

#[tokio::test]
async fn an_interpreter_around_the_home_directory_is_passed_over_and_named() -> Result<()> {
    let world = tempfile::tempdir()?;
    let program = a_python(world.path())?;
    let hidden = Hidden::new([("the home directory", world.path().join("me"))]);
    let known = Known::hiding(hidden);
    answered(&known, &program).await;
    let mut choice = Choice::default();
    assert!(!known.take(&program, (3, 11), &mut choice).await);
    assert!(choice.pythons.is_empty());
    let told = &choice.passed_over;
    let why = format!("{} is passed over", program.display());
    assert!(
        told.contains(&why) && told.contains("holds the home directory"),
        "{told}"
    );
    let known = Known::default();
    answered(&known, &program).await;
    assert!(known.take(&program, (3, 11), &mut choice).await);
    assert_eq!(choice.pythons.len(), 1);
    Ok(())
}

/// A question had no bound: a program that does not end held up the pods of its image for ever.
#[tokio::test]
async fn an_interpreter_that_does_not_answer_is_given_up() -> Result<()> {
    let home = tempfile::tempdir()?;
    let program = home.path().join("python");
    sundown_testing::write_program(&program, "#!/bin/sh\nexec sleep 600\n")?;
    let known = Known {
        answer_time_max: Duration::from_millis(50),
        ..Known::default()
    };
    let asked = sundown_testing::within("the end of the question", known.ask(&program)).await?;
    assert_eq!(asked, Err(Silent));
    Ok(())
}
