package table

import (
	"fmt"
	"io"
	"strings"
	"unsafe"
)

// lineReader divides a text into lines. Lines share the memory of the block in which they were read, so a line is
// not copied.
type lineReader struct {
	r     io.Reader
	block string // text that was read and not returned yet
	at    int64  // number of lines returned so far
	end   bool   // the file has no more text than block
}

// lineBlock is the number of bytes that are read at a time.
const lineBlock = 1 << 20

// next returns the next line with its newline, which only the last line may lack; io.EOF after the last line. A
// line of more than maxRow bytes is an error.
func (l *lineReader) next() (line string, err error) {
	searched := 0
	for {
		if i := strings.IndexByte(l.block[searched:], '\n'); i >= 0 {
			line, l.block = l.block[:searched+i+1], l.block[searched+i+1:]
			l.at++
			return line, nil
		}
		if searched = len(l.block); l.end {
			break
		}
		if err := l.more(); err != nil {
			return "", err
		}
	}
	if l.block == "" {
		return "", io.EOF
	}
	line, l.block = l.block, ""
	l.at++
	return line, nil
}

// whole returns the next complete lines without consuming them: as many as fit in max bytes, and at least one.
// lines is their number. After the last line it returns io.EOF.
func (l *lineReader) whole(max int) (text string, lines int64, err error) {
	for {
		end := len(l.block)
		if !l.end || end > max {
			// If no line ends within max, one longer line is taken.
			end = strings.LastIndexByte(l.block[:min(end, max)], '\n') + 1
			if end == 0 {
				end = strings.IndexByte(l.block, '\n') + 1
			}
			if end == 0 && l.end {
				end = len(l.block)
			}
		}
		if end > 0 {
			text = l.block[:end]
			lines = int64(strings.Count(text, "\n"))
			if text[end-1] != '\n' {
				lines++
			}
			return text, lines, nil
		}
		if l.end {
			return "", 0, io.EOF
		}
		if err := l.more(); err != nil {
			return "", 0, err
		}
	}
}

// skip consumes lines that whole has returned.
func (l *lineReader) skip(text string, lines int64) {
	l.block = l.block[len(text):]
	l.at += lines
}

// more reads more text, unless the current line is too long already.
func (l *lineReader) more() error {
	if len(l.block) > maxRow {
		return fmt.Errorf("line %d has more than %d bytes; is a quote or a newline missing?", l.at+1, maxRow)
	}
	return l.fill()
}

// fill appends text from the file to the block. The block is new memory each time, since lines refer to the old
// block.
func (l *lineReader) fill() error {
	buf := make([]byte, 2*max(lineBlock, len(l.block)))
	n := copy(buf, l.block)
	m, err := io.ReadAtLeast(l.r, buf[n:], 1)
	for err == nil && n+m < len(buf) {
		var k int
		k, err = l.r.Read(buf[n+m:])
		m += k
	}
	if l.end = err == io.EOF; !l.end && err != nil {
		return err
	}
	// Only at the end of a file so little is read.
	if n+m < len(buf)/2 {
		l.block = string(buf[:n+m]) // a copy, so that little text does not keep all of buf
		return nil
	}
	l.block = unsafe.String(unsafe.SliceData(buf), n+m) // nothing is written to buf any more
	return nil
}

// byteOrderMark is at the beginning of UTF-8 files from some programs on Windows.
const byteOrderMark = "\xef\xbb\xbf"

// maxRow limits a line or a cell, in bytes: a missing quote makes one cell of the rest of the file.
const maxRow = 256 << 20
