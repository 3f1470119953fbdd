# Asks the cluster's own dashboard how all of its jobs are.
import json, os, urllib.request

jobs = json.load(urllib.request.urlopen("http://127.0.0.1:8265/api/jobs/"))
with open("/counts/told.new", "w") as file:
    json.dump({job["entrypoint"]: job["status"] for job in jobs}, file)
os.rename("/counts/told.new", "/counts/told")
