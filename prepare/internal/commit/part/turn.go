package part

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// Turn is the right of a process to make a part. On one machine only one process has the turn at a time. Other
// machines may make the same part at the same time: locks do not reach them, so they build under other names, see
// Attempt, and [Part.Publish] lets the first process win.
type Turn struct {
	id     string // of what the lock reaches
	folder *os.Root
	name   string // of the lock
	lock   *os.File
}

// turnPoll is how often a process that waits tries to take the lock. The lock is taken without waiting each time, as a
// wait inside of the system could not be ended by a context.
const turnPoll = 200 * time.Millisecond

// Take waits until no other process of this machine holds the turn with that name in a folder. If it has to
// wait, it calls wait once.
func Take(ctx context.Context, folder, name string, wait func()) (*Turn, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	t := &Turn{id: machine(root), folder: root}
	t.name = fmt.Sprintf(".%s.%s.lock", name, t.id)
	for n := 0; ; n++ {
		switch t.lock, err = write.Lock(root, t.name); {
		case errors.Is(err, write.ErrNoLocks):
			t.id = fmt.Sprintf("%016x", rand.Uint64())
			return t, nil
		case !errors.Is(err, store.ErrBusy):
			if err != nil {
				err = errors.Join(err, root.Close())
			}
			return t, err
		}
		if n == 0 {
			wait()
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), root.Close())
		case <-time.After(turnPoll):
		}
	}
}

// ID names the machine, or this process where the file system has no locks. With an ID of its own, each process there
// builds its own attempt, and the first process to publish wins.
func (t *Turn) ID() string { return t.id }

// End lets the next process have its turn.
func (t *Turn) End() {
	if t.lock != nil {
		write.Unlock(t.folder, t.name, t.lock)
	}
	_ = t.folder.Close()
}

// Machine, if it is not empty, replaces the name of this machine: a test acts as several machines.
var Machine string

// machine names the reach of a lock in a folder: the processes of one kernel, since its start, on one mount of the
// file system. So a folder that two machines share, or two mounts of one machine, has two names.
func machine(folder *os.Root) string {
	kernel, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		host, _ := os.Hostname()
		kernel = []byte(host)
	}
	info, _ := folder.Stat(".")
	h := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s", kernel, device(info), Machine))
	return hex.EncodeToString(h[:8])
}
