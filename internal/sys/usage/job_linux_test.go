package usage

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
)

// The time of a process and of one that it has started is the job's, if it has joined that.
func TestJob(t *testing.T) {
	if os.Getenv("PENSTOCK_COMPUTE") != "" {
		for begin := ownProcess(); ownProcess()-begin < 100*time.Millisecond; {
		}
		return
	}
	compute := os.Args[0] + " -test.run '^TestJob$' > /dev/null"
	defer Join(0)
	for _, c := range []struct {
		join bool
		want time.Duration
	}{{false, 0}, {true, 100 * time.Millisecond}} {
		cmd := exec.Command("sh", "-c", "read go; "+compute+"; "+compute+"; read end")
		cmd.Env = append(os.Environ(), "PENSTOCK_COMPUTE=1")
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		Join(0)
		if c.join {
			Join(cmd.Process.Pid)
		}
		before, own := Job(), ownProcess()
		if _, err := in.Write([]byte("go\n")); err != nil {
			t.Fatal(err)
		}
		var got time.Duration
		for end := time.Now().Add(10*c.want + 200*time.Millisecond); time.Now().Before(end) && (!c.join || got < c.want); time.Sleep(10 * time.Millisecond) {
			got = max(got, Job()-before-(ownProcess()-own))
		}
		if got < c.want-50*time.Millisecond || !c.join && got > 10*time.Millisecond {
			t.Errorf("joined %v: %v of a job that computed", c.join, got)
		}
		in.Close()
		if err := cmd.Wait(); err != nil && c.join {
			t.Log(err) // its last read ends
		}
	}
}
