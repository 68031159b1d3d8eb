package s3test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
)

// linkTo makes the program shaped links, as many as linkCount, to the upstream that it names: the
// proxy's work is not that of the process that trains.
const (
	linkTo    = "PENSTOCK_LINK_TO"
	linkCount = openings + 1
)

func TestMain(m *testing.M) {
	upstream := os.Getenv(linkTo)
	if upstream == "" {
		os.Exit(m.Run())
	}
	if err := serveLinks(upstream); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serveLinks prints the addresses of links, and serves them until its input ends.
func serveLinks(upstream string) error {
	trip, rate := shapeOfLinks()
	for range linkCount {
		l, err := listen(upstream)
		if err == nil {
			err = l.shape(trip, rate)
		}
		if err != nil {
			return err
		}
		fmt.Println(l.Address)
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// shapeOfLinks returns round trip and bytes a second of RTT_MS and LINK_MBS.
func shapeOfLinks() (trip time.Duration, rate int64) {
	return time.Duration(setting("RTT_MS", 50)) * time.Millisecond, int64(setting("LINK_MBS", 200)) * 1e6
}

// linksApart returns the addresses of shaped links, which a process of their own serves until the
// benchmark ends. They have one line, and connections of their own.
func linksApart(b *testing.B, upstream string) (addresses []string) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), linkTo+"="+upstream)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(b, err)
	out, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	b.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	for lines := bufio.NewReader(out); len(addresses) < linkCount; {
		line, err := lines.ReadString('\n')
		if err != nil {
			b.Fatalf("the links' process: %v", err)
		}
		addresses = append(addresses, strings.TrimSpace(line))
	}
	return addresses
}
