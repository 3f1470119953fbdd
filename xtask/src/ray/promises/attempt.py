# Notes that it began, whether it ever saw another attempt alive, and that it was told to end.
import glob, os, time, uuid

def note(text):
    with open("/counts/runs", "a") as file:
        file.write(text + "\n")

me = f"/counts/attempt-{uuid.uuid4()}"
note("begun")
while not os.path.exists("/counts/enough"):
    open(me, "w").close()
    others = [it for it in glob.glob("/counts/attempt-*") if it != me]
    if any(time.time() - os.path.getmtime(it) < 3 for it in others):
        note("another one is alive")
    time.sleep(0.5)
note("ended")
