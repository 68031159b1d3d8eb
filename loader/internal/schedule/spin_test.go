package schedule

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhileSeesTheChange(t *testing.T) {
	var word atomic.Uint64
	if !spinWhile(&word, 1, 0) {
		t.Error("what had changed before was not seen")
	}
	go word.Store(1)
	for !spinWhile(&word, 0, time.Second) { // whenever the other goroutine has its turn
	}
	if word.Load() != 1 {
		t.Error("a change was seen that was none")
	}
}

func TestWhileEnds(t *testing.T) {
	var word atomic.Uint64
	if spinWhile(&word, 0, time.Microsecond) {
		t.Error("a change was seen that was none")
	}
	synctest.Test(t, func(*testing.T) { // where time stands still while anybody works
		if spinWhile(&word, 0, time.Hour) {
			t.Error("a change was seen that was none")
		}
	})
}

func BenchmarkPause(b *testing.B) {
	for b.Loop() {
		pause(pauses)
	}
}
