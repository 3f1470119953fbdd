# A driver outside of the cluster: says which job it is, waits, and computes.
import os, sys, time, ray

ray.init(sys.argv[1])
with open("/counts/job.new", "w") as file:
    file.write(ray.get_runtime_context().get_job_id())
os.rename("/counts/job.new", "/counts/job")
while not os.path.exists("/counts/enough"):
    time.sleep(0.5)

@ray.remote
def answer():
    return 42

with open("/counts/answer", "w") as file:
    file.write(str(ray.get(answer.remote())))
