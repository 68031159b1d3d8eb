package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
)

func init() { register.DoFn2x2[context.Context, int64, int64, error](&makePart{}) }

// makePart makes a part of a dataset for every rank that comes. A runner may repeat it, even
// concurrently: an existing part is not made again.
type makePart struct {
	Program string   // preprocess
	Args    []string // SOURCE DEST and flags of preprocess
	Parts   int
}

// ProcessElement makes one part, and returns its rank.
func (m *makePart) ProcessElement(ctx context.Context, rank int64) (int64, error) {
	args := append(append([]string(nil), m.Args...), "--rank", strconv.FormatInt(rank, 10), "--world-size",
		strconv.Itoa(m.Parts), "--quiet")
	if err := runPreprocess(ctx, m.Program, io.Discard, args...); err != nil {
		return rank, fmt.Errorf("part %d of %d: %w", rank, m.Parts, err)
	}
	return rank, nil
}

// skipped is the exit code of preprocess where samples were left out, as was asked for.
const skipped = 3

// runPreprocess runs preprocess. Its error includes the command's output.
func runPreprocess(ctx context.Context, program string, stdout io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	var errText bytes.Buffer
	cmd.Stdout, cmd.Stderr = stdout, &errText
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil, errors.As(err, &exit) && exit.ExitCode() == skipped:
		return nil
	case errText.Len() > 0:
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(errText.String()))
	}
	return err
}
