//go:build !linux

package mirror

import (
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	lockSetup  = 0
	lockUsers  = 1 << 10
	lockBlocks = 1 << 20
	setupLimit = time.Minute
)

type locks struct{ file *os.File }

func (l locks) try(from, n int64) bool                       { return true }
func (l locks) free(from, n int64)                           {}
func (l locks) held(from, n int64) bool                      { return false }
func (l locks) wait(from, n int64, limit time.Duration) bool { return true }

func openState(root *os.Root, blocks, segments int64) (*state, error) {
	return nil, fmt.Errorf("mirrors need Linux; copy the dataset and open the copy: %w", errors.ErrUnsupported)
}

func (s *state) others(segment int64) bool { return true }
func (s *state) leave() error              { return nil }

func punch(f *os.File, off, n int64) error { return errors.ErrUnsupported }
func diskBytes(info os.FileInfo) int64     { return info.Size() }
func isFull(err error) bool                { return false }
