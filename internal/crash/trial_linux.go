package crash

import (
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// Crashes is the flag that makes every Trial more thorough.
var Crashes = flag.Int("crashes", 0, "random power cuts at each step, and states from which a second crash at each step is tried")

// Trial is the test of a program that goes on after crashes.
type Trial struct {
	Folder  string // with what is there before the program runs; it ends up with what is there after it
	Scratch string // a folder for states

	// Command returns what the running program's file needs to do its work in folder.
	Command func(folder string) (env, args []string)

	// Done is called when Folder is as the program leaves it that is not interrupted.
	Done func()

	// GoOn has the program go on with a state that is in folder, and says what is wrong with
	// what it makes of that.
	GoOn func(s State, folder string) error
}

// Run records the program, and has it go on after a crash at any of its steps; with the flag
// -crashes N also after a second one while it goes on, from N states. In short tests it tries
// one in eight.
func (c *Trial) Run(t *testing.T) {
	t.Helper()
	log := c.record(t, c.Folder)
	c.Done()
	picked := sample{most: *Crashes, rng: rand.New(rand.NewPCG(5, 5))}
	n := c.each(t, log, "", picked.add)
	again := 0
	for _, first := range picked.states {
		folder := filepath.Join(c.Scratch, "second")
		if err := first.Write(folder); err != nil {
			t.Fatal(err)
		}
		again += c.each(t, c.record(t, folder), first.What+"; then ", func(State) {})
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d steps, %d states, and %d after a second crash", log.Len(), n, again)
}

// sample is states at random, at most so many.
type sample struct {
	most   int
	rng    *rand.Rand
	states []State
	of     int
}

func (s *sample) add(state State) {
	s.of++
	if len(s.states) < s.most {
		s.states = append(s.states, state)
	} else if i := s.rng.IntN(s.of); i < s.most {
		s.states[i] = state
	}
}

// record skips the test where that cannot be done.
func (c *Trial) record(t *testing.T, folder string) *Log {
	t.Helper()
	env, args := c.Command(folder)
	log, err := Record(folder, append(os.Environ(), env...), append([]string{os.Args[0]}, args...)...)
	if errors.Is(err, ErrUntraceable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// each goes on with all that a crash can leave, and returns how many states that are.
func (c *Trial) each(t *testing.T, log *Log, before string, told func(State)) (n int) {
	t.Helper()
	folder := filepath.Join(c.Scratch, "state")
	for s := range log.States(*Crashes, 1) {
		n++
		told(s)
		if testing.Short() && n%8 != 0 {
			continue
		}
		err := errors.Join(s.Write(folder), c.GoOn(s, folder), os.RemoveAll(folder))
		if err != nil {
			t.Fatalf("%s%s, the last mark being %q: %v", before, s.What, s.Mark, err)
		}
	}
	return n
}
