package schedule_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader/internal/order"
	"github.com/penstock/penstock/loader/internal/schedule"
	"github.com/penstock/penstock/loader/sampler"
)

// slots has no memory: it counts.
type slots struct {
	live, most int
	cleared    []int
	idle       bool
}

func (m *slots) Extend(n int) int {
	n = min(n, m.most-m.live)
	m.live += n
	return n
}

func (m *slots) Clear(slot int) { m.cleared = append(m.cleared, slot) }
func (m *slots) Idle()          { m.idle = true }

var (
	errStop = errors.New("stop")
	errBad  = errors.New("bad")
)

// driver calls a Schedule as workers and a loop do, in one goroutine and at times that it makes.
type driver struct {
	t       *testing.T
	s       *schedule.Schedule
	memory  slots
	now     time.Duration
	step    time.Duration // of the clock with each look at it
	started int
	stuck   []int // epoch, step and slot
}

func newDriver(t *testing.T, c schedule.Config) *driver {
	t.Helper()
	d := &driver{t: t, step: 1, memory: slots{most: 100}}
	c.Slots, c.Clock = &d.memory, func() time.Duration { d.now += d.step; return d.now }
	c.Start = func() { d.started++ }
	c.Stuck = func(epoch, step, slot int) error {
		d.stuck = []int{epoch, step, slot}
		return errBad
	}
	c.MinWorkers, c.MaxWorkers = max(c.MinWorkers, c.Workers), max(c.MaxWorkers, c.Workers)
	d.s = schedule.New(c)
	return d
}

// epoch returns one of some steps of four records.
func epoch(number, steps int) *order.Epoch {
	return order.New(order.Shares{Batch: 4, Ranks: 1}, number, sampler.Sequential{}.Epoch(4*steps, 0, number))
}

// begin returns a loop over an epoch of some steps.
func (d *driver) begin(plan schedule.Plan) *schedule.Loop {
	d.t.Helper()
	l := d.s.NewLoop(plan)
	l.Look(nil)
	require.NoError(d.t, l.Begin(d.t.Context()))
	return l
}

// task returns the task of a worker, and fails if there is none.
func (d *driver) task(worker int, kind schedule.Kind, step int) schedule.Task {
	d.t.Helper()
	task := d.s.Assign(worker)
	if task.Kind != kind || kind != schedule.End && task.Step != step {
		d.t.Fatalf("worker %d: task %+v; want kind %d, step %d", worker, task, kind, step)
	}
	return task
}

// take returns the slot of the next batch, which must be there and be step.
func (d *driver) take(l *schedule.Loop, step int, want error) schedule.Given {
	d.t.Helper()
	if _, at := l.Epoch(); at != step {
		d.t.Fatalf("the loop is at step %d, not %d", at, step)
	}
	g, err := l.Take(d.now, 0)
	if err != want {
		d.t.Fatalf("step %d: %v; want %v", step, err, want)
	}
	return g
}

// finish ends a loop of which nothing is under way.
func (d *driver) finish(l *schedule.Loop) {
	d.t.Helper()
	if !l.Finish() {
		d.t.Fatal("the loop hangs")
	}
	l.Sweep()
}

// A slot is free, filling, done, given, kept and free again.
func TestStatesOfSlots(t *testing.T) {
	d := newDriver(t, schedule.Config{Workers: 1, Prefetch: 1})
	if d.memory.live != 3 {
		t.Fatalf("%d slots for one worker, one batch ready and one in the loop", d.memory.live)
	}
	l := d.begin(schedule.Plan{First: epoch(3, 3)})
	if d.started != 1 {
		t.Errorf("the workers were started %d times", d.started)
	}
	for step := range 3 { // all slots are done, and nobody has taken one
		d.s.Done(d.task(0, schedule.Batch, step).Slot, schedule.Low, nil)
	}
	a := d.take(l, 0, nil)
	lost := d.s.Keep(a.Slot, func() bool { return false })
	held := d.s.Keep(a.Slot, func() bool { return true })
	if lost != schedule.NotHeld || held != schedule.Held || !slices.Equal(d.s.Kept(), []int{a.Slot}) {
		t.Errorf("Keep: %v and %v, kept %v", lost, held, d.s.Kept())
	}
	b := d.take(l, 1, nil)
	if got := d.s.Keep(b.Slot, func() bool { return true }); got != schedule.TooMany {
		t.Errorf("a second batch is kept: %v", got)
	}
	d.s.Free(b.Slot)
	d.s.Free(a.Slot)
	if got := d.s.Times(); got.Kept != 0 || got.Ready != 2 || got.Epochs != 1 || !slices.Equal(d.memory.cleared, []int{b.Slot, a.Slot}) {
		t.Errorf("%+v, cleared %v", got, d.memory.cleared)
	}
	d.finish(l) // with step 2 done
	if at, _ := d.s.At(); at != (schedule.Position{Epoch: 3, Step: 2}) || len(d.memory.cleared) != 3 || !d.s.IsIdle() {
		t.Errorf("left at %+v, cleared %v", at, d.memory.cleared)
	}
}

// The first batch opens a loop: alone, or in pieces. The first error in the order of records is its error.
func TestOpening(t *testing.T) {
	d := newDriver(t, schedule.Config{Workers: 3, Prefetch: 2})
	l := d.begin(schedule.Plan{First: epoch(0, 5)})
	first := d.task(0, schedule.Batch, 0)
	if !first.Opens {
		t.Error("the first batch does not open the loop")
	}
	if !d.s.Divide(first.Slot, 4) {
		t.Fatal("a batch of four records is not split among three workers")
	}
	var list []schedule.Task
	for worker := range 3 {
		piece := d.task(worker, schedule.Piece, 0)
		if piece.Piece != worker || piece.Pieces != 3 {
			t.Errorf("piece %d of %d", piece.Piece, piece.Pieces)
		}
		list = append(list, piece)
	}
	second := d.task(1, schedule.Batch, 1)
	if second.Opens {
		t.Error("the second batch opens the loop, too")
	}
	later := errors.New("later")
	for i, err := range []error{nil, later, errBad} {
		last, failed := d.s.PieceDone(list[i].Slot, []int{2, 3, 1}[i], err)
		if last != (i == 2) || last && failed != errBad {
			t.Errorf("piece %d: last is %v, error %v", i, last, failed)
		}
	}
	d.s.Done(first.Slot, schedule.Low, errBad)
	d.take(l, 0, errBad)
	d.s.Done(second.Slot, schedule.Low, nil)
	d.finish(l)

	l = d.begin(schedule.Plan{First: epoch(0, 5)})
	first = d.task(2, schedule.Batch, 0)
	d.s.Open()
	d.s.Done(d.task(0, schedule.Batch, 1).Slot, schedule.Low, nil)
	d.s.Done(first.Slot, schedule.Low, nil)
	d.s.Free(d.take(l, 0, nil).Slot)
	d.s.Free(d.take(l, 1, nil).Slot)
	d.finish(l)
}

// Batches come in order unless they may come out of it. A Position says which came early, and a loop that
// begins there leaves them out.
func TestOrder(t *testing.T) {
	for _, unordered := range []bool{false, true} {
		d := newDriver(t, schedule.Config{Workers: 3, Prefetch: 3, Unordered: unordered})
		l := d.begin(schedule.Plan{First: epoch(1, 6)})
		var tasks []schedule.Task
		for step := range 4 {
			tasks = append(tasks, d.task(0, schedule.Batch, step))
			if step == 0 {
				d.s.Open()
			}
		}
		d.s.Done(tasks[2].Slot, schedule.Low, nil)
		if unordered {
			d.s.Free(d.take(l, 0, nil).Slot) // step 2
			at, _ := d.s.At()
			if at.Step != 0 || at.Early.String() != "4" {
				t.Errorf("at %+v", at)
			}
			for _, i := range []int{0, 1, 3} {
				d.s.Done(tasks[i].Slot, schedule.Low, nil)
			}
			d.finish(l)
			early, err := schedule.ParseTicks(at.Early.String())
			require.NoError(t, err)
			at.Early = early
			l = d.begin(schedule.Plan{First: epoch(1, 6), From: at})
			for _, step := range []int{0, 1, 3} {
				task := d.task(0, schedule.Batch, step)
				if step == 0 {
					d.s.Open()
				}
				d.s.Done(task.Slot, schedule.Low, nil)
				d.s.Free(d.take(l, step, nil).Slot)
			}
			d.finish(l)
			continue
		}
		d.s.Done(tasks[0].Slot, schedule.Low, nil)
		d.s.Done(tasks[1].Slot, schedule.Low, nil)
		for step := range 3 {
			g := d.take(l, step, nil)
			if g.Slot != tasks[step].Slot {
				t.Errorf("step %d is slot %d, not %d", step, g.Slot, tasks[step].Slot)
			}
			d.s.Free(g.Slot)
		}
		d.s.Done(tasks[3].Slot, schedule.Low, nil)
		d.finish(l)
	}
}

// The workers begin the next epoch while the loop is in one. After the last one nothing is left.
func TestEpochs(t *testing.T) {
	d := newDriver(t, schedule.Config{Workers: 1, Prefetch: 2})
	l := d.begin(schedule.Plan{First: epoch(0, 2), Next: epoch(1, 2)})
	for number := range 3 {
		for step := range 2 {
			if !l.More() {
				t.Fatal("the epoch ended")
			}
			task := d.task(0, schedule.Batch, step)
			if task.Epoch.Number != number || task.Tick != 2*number+step {
				t.Errorf("tick %d of epoch %d", task.Tick, task.Epoch.Number)
			}
			if e, ahead, at, low := l.Ahead(task.Tick); low != task.Tick || at == low+1 && (e.Number != number+(step+1)/2 || ahead != 1-step) {
				t.Errorf("ahead of tick %d: step %d, tick %d, from %d on", task.Tick, ahead, at, low)
			}
			d.s.Done(task.Slot, schedule.Low, nil)
			d.s.Free(d.take(l, step, nil).Slot)
		}
		switch number {
		case 0:
			l.Advance(epoch(2, 2))
		case 1:
			l.Advance(nil)
		}
	}
	if e, _, _, _ := l.Ahead(6); l.More() || e != nil {
		t.Errorf("there is an epoch %v after the last one", e)
	}
	d.finish(l)
	if at, _ := d.s.At(); at != (schedule.Position{Epoch: 3}) {
		t.Errorf("ended at %+v", at)
	}
}

// While batches are instant the loop makes them itself, some together; else workers do.
func TestInline(t *testing.T) {
	d := newDriver(t, schedule.Config{Workers: 2, Prefetch: 2})
	warm := 40 // steps from the first on
	isInstant := func(_ *order.Epoch, step, steps int) bool { return step+steps <= warm }
	plan := schedule.Plan{First: epoch(0, 40)}
	l := d.s.NewLoop(plan)
	l.Look(isInstant)
	require.NoError(t, l.Begin(t.Context()))
	if inline, isWarm := l.IsInline(); !inline || !isWarm || d.started != 0 {
		t.Fatalf("inline %v, warm %v, %d starts", inline, isWarm, d.started)
	}
	tasks := l.AssignInline(nil, schedule.MaxTogether)
	if len(tasks) != 5 || !tasks[4].Inline || !tasks[4].Warm || tasks[4].Opens {
		t.Fatalf("%d tasks for five slots: %+v", len(tasks), tasks)
	}
	l.DoneInline(tasks)
	for step := range 5 {
		if more := l.AssignInline(nil, 1); len(more) > 0 {
			t.Fatalf("step %d is made while %d is ready", more[0].Step, step)
		}
		g := d.take(l, step, nil)
		if !g.Inline {
			t.Error("a batch that the loop made counts as a worker's")
		}
		d.s.Free(g.Slot)
	}
	d.finish(l)

	warm = 7 // too few for all that may be made in advance
	l = d.s.NewLoop(plan)
	for range 2 {
		l.Look(isInstant)
	}
	if inline, _ := l.IsInline(); !inline {
		t.Error("seven instant batches are enough for two workers and two that wait")
	}
	require.NoError(t, l.Begin(t.Context()))
	for step := range 3 {
		d.s.Done(l.AssignInline(nil, 1)[0].Slot, schedule.Low, nil)
		d.s.Free(d.take(l, step, nil).Slot)
	}
	l.Look(isInstant)
	if inline, _ := l.IsInline(); inline || d.started != 1 {
		t.Errorf("inline %v before a batch that is not instant, %d starts", inline, d.started)
	}
	task := d.task(0, schedule.Batch, 3)
	d.s.Done(task.Slot, schedule.Low, nil)
	d.s.Free(d.take(l, 3, nil).Slot)
	d.finish(l)
}

// A batch that fails ends the loop there; no later one is begun.
func TestFailure(t *testing.T) {
	d := newDriver(t, schedule.Config{Workers: 2, Prefetch: 2})
	l := d.begin(schedule.Plan{First: epoch(0, 9)})
	a := d.task(0, schedule.Batch, 0)
	d.s.Open()
	b := d.task(1, schedule.Batch, 1)
	d.s.Done(b.Slot, schedule.Low, errBad)
	idle := d.assign(1)
	d.s.Done(a.Slot, schedule.Low, nil)
	d.s.Free(d.take(l, 0, nil).Slot)
	d.take(l, 1, errBad)
	d.finish(l)
	if at, _ := d.s.At(); at.Step != 1 || !d.s.IsIdle() {
		t.Errorf("left at %+v", at)
	}
	d.s.Close(errStop)
	if task := <-idle; task.Kind != schedule.End {
		t.Errorf("a worker begins %+v after the batch that failed", task)
	}
}

// assign makes a worker wait for a task.
func (d *driver) assign(worker int) <-chan schedule.Task {
	c := make(chan schedule.Task, 1)
	go func() { c <- d.s.Assign(worker) }()
	time.Sleep(5 * time.Millisecond) // one that gets a task at once has it then
	return c
}

// Workers wait while the first batch opens a loop, and get its pieces first.
func TestWaitForOpening(t *testing.T) {
	d := newDriver(t, schedule.Config{Workers: 2, Prefetch: 2})
	l := d.begin(schedule.Plan{First: epoch(0, 5)})
	first := d.task(0, schedule.Batch, 0)
	other := d.assign(1)
	d.s.Divide(first.Slot, 4)
	if task := <-other; task.Kind != schedule.Piece || task.Step != 0 {
		t.Errorf("the other worker gets %+v", task)
	}
	d.task(0, schedule.Piece, 0)
	for range 2 {
		d.s.PieceDone(first.Slot, 0, nil)
	}
	d.s.Done(first.Slot, schedule.Low, nil)
	d.finish(l)
}

// A late batch holds all workers up, which continue when it is taken.
func TestLateBatch(t *testing.T) {
	d := newDriver(t, schedule.Config{Workers: 2, Prefetch: 2, Unordered: true})
	l := d.begin(schedule.Plan{First: epoch(0, 200)})
	late := d.task(0, schedule.Batch, 0)
	d.s.Open()
	var second schedule.Task
	for step := 1; step < schedule.MaxDisplacement; step++ {
		task := d.task(0, schedule.Batch, step)
		if step == 2 { // late, too: the first one ends what two workers wait for, and no more
			second = task
			continue
		}
		d.s.Done(task.Slot, schedule.Low, nil)
		g, err := l.Take(d.now, 0)
		require.NoError(t, err)
		d.s.Free(g.Slot)
	}
	a, b := d.assign(0), d.assign(1)
	if len(a)+len(b) > 0 {
		t.Fatal("a worker is further ahead than a Position can say")
	}
	d.s.Done(late.Slot, schedule.Low, nil)
	if _, err := l.Take(d.now, 0); err != nil {
		t.Fatal(err)
	}
	for _, worker := range []<-chan schedule.Task{a, b} {
		select {
		case task := <-worker:
			d.s.Done(task.Slot, schedule.Low, nil)
		case <-time.After(10 * time.Second):
			t.Fatal("a worker does not know")
		}
	}
	d.s.Done(second.Slot, schedule.Low, nil)
	d.finish(l)
}

// Ahead says what no worker has yet, from the first batch on for one who has not looked.
func TestAhead(t *testing.T) {
	d := newDriver(t, schedule.Config{Workers: 1, Prefetch: 2})
	l := d.begin(schedule.Plan{First: epoch(0, 9)})
	var tasks []schedule.Task
	for step := range 3 {
		tasks = append(tasks, d.task(0, schedule.Batch, step))
	}
	for tick, want := range map[int]int{0: 0, 1: 3, 3: 3, 5: 5} {
		if _, step, at, low := l.Ahead(tick); step != want || at != want || low != 0 {
			t.Errorf("ahead of tick %d: step %d, tick %d, from %d on; want %d", tick, step, at, low, want)
		}
	}
	for _, task := range tasks {
		d.s.Done(task.Slot, schedule.Low, nil)
	}
	d.finish(l)
}

// A batch that is not instant is not the loop's, neither before it nor at it.
func TestOneColdBatch(t *testing.T) {
	d := newDriver(t, schedule.Config{Workers: 1, Prefetch: 1})
	isInstant := func(_ *order.Epoch, step, steps int) bool { return step > 2 || step+steps <= 2 }
	l := d.s.NewLoop(schedule.Plan{First: epoch(0, 40)})
	l.Look(isInstant)
	require.NoError(t, l.Begin(t.Context()))
	for step := range 5 {
		l.Look(isInstant)
		inline, _ := l.IsInline()
		if inline != (step > 2) {
			t.Errorf("step %d: inline is %v", step, inline)
		}
		var slot int
		if inline {
			tasks := l.AssignInline(nil, 1)
			l.DoneInline(tasks)
			slot = tasks[0].Slot
		} else {
			slot = d.task(0, schedule.Batch, step).Slot
			d.s.Done(slot, schedule.Low, nil)
		}
		d.take(l, step, nil)
		d.s.Free(slot)
	}
	d.finish(l)
}

// A loop whose context is done ends with its cause, and a second one has to wait.
func TestCancel(t *testing.T) {
	d := newDriver(t, schedule.Config{Workers: 1, Prefetch: 1})
	ctx, cancel := context.WithCancelCause(t.Context())
	l := d.s.NewLoop(schedule.Plan{First: epoch(0, 9)})
	l.Look(nil)
	require.NoError(t, l.Begin(ctx))
	other := d.s.NewLoop(schedule.Plan{First: epoch(0, 9)})
	if err := other.Begin(ctx); !errors.Is(err, schedule.ErrBusy) {
		t.Errorf("a second loop: %v", err)
	}
	if err := d.s.Seek(func() (schedule.Position, error) { return schedule.Position{}, nil }); !errors.Is(err, schedule.ErrBusy) {
		t.Errorf("Seek: %v", err)
	}
	task := d.task(0, schedule.Batch, 0)
	cancel(errStop)
	d.take(l, 0, errStop)
	if task.Ctx.Err() == nil || context.Cause(task.Ctx) != errStop {
		t.Error("the worker does not know")
	}
	d.s.Done(task.Slot, schedule.Low, errStop)
	d.finish(l)
	require.NoError(t, d.s.Seek(func() (schedule.Position, error) { return schedule.Position{Epoch: 7, Step: 2}, nil }))
	if at, resumed := d.s.At(); !resumed || at.Epoch != 7 || at.Step != 2 {
		t.Errorf("at %+v, resumed %v", at, resumed)
	}
}

// A loop with a worker that hangs is abandoned. It ends with the worker's batch, and only then may another begin.
func TestAbandoned(t *testing.T) {
	d := newDriver(t, schedule.Config{Workers: 1, Prefetch: 1, Timeout: time.Millisecond})
	l := d.begin(schedule.Plan{First: epoch(4, 9)})
	task := d.task(0, schedule.Batch, 0)
	d.step = time.Millisecond
	if _, err := l.Take(1, 0); err != errBad || !slices.Equal(d.stuck, []int{4, 0, task.Slot}) {
		t.Fatalf("error %v, stuck %v", err, d.stuck)
	}
	if l.Finish() {
		t.Fatal("a loop whose worker hangs is whole")
	}
	other := d.s.NewLoop(schedule.Plan{First: epoch(0, 9)})
	if err := other.Begin(t.Context()); !errors.Is(err, errBad) || errors.Is(err, schedule.ErrBusy) {
		t.Errorf("another loop: %v", err)
	}
	d.s.Done(task.Slot, schedule.Low, errStop)
	if !d.s.IsIdle() || !slices.Equal(d.memory.cleared, []int{task.Slot}) {
		t.Errorf("cleared %v", d.memory.cleared)
	}
	d.finish(d.begin(schedule.Plan{First: epoch(0, 9)}))
}

// Close ends workers and loops. The last slot that comes free says so.
func TestClose(t *testing.T) {
	d := newDriver(t, schedule.Config{Workers: 1, Prefetch: 1})
	l := d.begin(schedule.Plan{First: epoch(0, 9)})
	d.s.Done(d.task(0, schedule.Batch, 0).Slot, schedule.Low, nil)
	g := d.take(l, 0, nil)
	if d.s.Keep(g.Slot, func() bool { return true }) != schedule.Held {
		t.Fatal("not held")
	}
	d.s.Done(d.task(0, schedule.Batch, 1).Slot, schedule.Low, nil)
	unkept := d.take(l, 1, nil)
	found, ok := d.s.Close(errStop)
	if !ok || !slices.Equal(found.Kept, []int{g.Slot}) || found.Lost != nil {
		t.Errorf("closing: %+v, %v", found, ok)
	}
	if _, again := d.s.Close(errStop); again {
		t.Error("closed twice")
	}
	d.task(0, schedule.End, 0)
	d.take(l, 2, errStop)
	d.finish(l)
	d.s.Free(unkept.Slot)
	if d.memory.idle || d.s.IsIdle() {
		t.Error("idle while a batch is kept")
	}
	d.s.Free(g.Slot)
	if !d.memory.idle || !d.s.IsIdle() {
		t.Error("not idle")
	}
	if err := d.s.NewLoop(schedule.Plan{First: epoch(0, 1)}).Begin(t.Context()); err != errStop {
		t.Errorf("a loop begins: %v", err)
	}
}

// storage is where all records come from.
type storage struct{}

func (storage) FromStorage() bool { return true }

// One worker becomes two when batches come from storage, if there is memory for their slots.
func TestStorageAddsAWorker(t *testing.T) {
	for _, room := range []int{100, 4} {
		d := newDriver(t, schedule.Config{Workers: 1, MaxWorkers: 4, Prefetch: 2})
		d.memory.most = room
		l := d.begin(schedule.Plan{First: epoch(0, 30), Reads: storage{}})
		d.s.Done(d.task(0, schedule.Batch, 0).Slot, schedule.Low, nil)
		d.s.Done(d.task(0, schedule.Batch, 1).Slot, schedule.Cold, nil)
		if got, want := d.memory.live, min(5, room); got != want {
			t.Errorf("%d slots; want %d", got, want)
		}
		if got := d.s.Times(); got.Workers != 2 || got.MaxWorkers != map[int]int{100: 4, 4: 2}[room] {
			t.Errorf("%d workers of %d", got.Workers, got.MaxWorkers)
		}
		d.finish(l)
	}
}

// A set of ticks is read as it was written.
func TestTicks(t *testing.T) {
	for text, ok := range map[string]bool{"": true, "6": true, "8000000000000000": true, "1": false, "10000000000000000": false, "x": false} {
		ticks, err := schedule.ParseTicks(text)
		if (err == nil) != ok || ok && ticks.String() != text {
			t.Errorf("%q: %v, %v", text, ticks, err)
		}
	}
}
