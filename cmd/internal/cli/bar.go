package cli

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// bar is a progress bar with rate and remaining time, for a terminal. It erases itself at the end.
type bar struct{ bar *progressbar.ProgressBar }

func newBar(out io.Writer, what string, total int64, unit string) bar {
	b := progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(out),
		progressbar.OptionSetDescription(what),
		progressbar.OptionSetWidth(30),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionSetItsString(unit),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionSpinnerType(14),
		progressbar.OptionSetSpinnerChangeInterval(0), // else a goroutine draws it for ever, over what comes next
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetTheme(progressbar.Theme{Saucer: "█", SaucerPadding: "░"}),
	)
	b.StartWithoutRender() // else the clock starts with the first progress, and rates are wrong
	return bar{b}
}

// every returns the time between two drawings: often enough to look alive, and cheap.
func (b bar) every() time.Duration { return 100 * time.Millisecond }

// show draws the bar. A bar that cannot be drawn does not stop the work, so its errors are dropped.
func (b bar) show(done int64) { _ = b.bar.Set64(done) }

func (b bar) finish(int64, time.Duration) { _ = b.bar.Clear() }
