package usage

import (
	"sync"
	"time"
)

// job has the processes that this process works for.
var job struct {
	mu     sync.Mutex
	root   int // 0 if there is none
	looked time.Time
	clocks map[int]time.Duration // of the root and those that it started, when they were last looked at
	total  time.Duration         // that they have run since Join
}

// lookEvery is how often new processes of the job are looked for.
const lookEvery = 200 * time.Millisecond

// Join says that this process works for another process, a program that trains: the other process and its children
// are this process's job. Only Linux reports how long other processes have run.
func Join(pid int) {
	job.mu.Lock()
	defer job.mu.Unlock()
	job.root, job.looked, job.clocks = pid, time.Time{}, nil
}

// Job returns the CPU time of this process and, after Join, of all processes of its job together; 0 where the system
// does not report it.
func Job() time.Duration {
	own := ownProcess()
	job.mu.Lock()
	defer job.mu.Unlock()
	if job.root == 0 || own == 0 {
		return own
	}
	if now := time.Now(); now.Sub(job.looked) >= lookEvery {
		clocks := make(map[int]time.Duration)
		for _, pid := range descendants(job.root) {
			before, known := job.clocks[pid]
			if !known && job.clocks == nil { // one that is new later has run since the last look
				before, _ = processOf(pid)
			}
			clocks[pid] = before
		}
		job.looked, job.clocks = now, clocks
	}
	for pid, before := range job.clocks {
		if at, ok := processOf(pid); ok {
			job.total += at - before
			job.clocks[pid] = at
		}
	}
	return own + job.total
}
