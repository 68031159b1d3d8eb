package loadbench

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// batchLog writes a line for each batch of each setup: CSV with a head, or JSON lines.
type batchLog struct {
	file *os.File
	out  *bufio.Writer
	csv  *csv.Writer // nil writes JSON lines
	err  error
}

// logFormats are the endings of names that a batchLog can have.
var logFormats = []string{".csv", ".jsonl"}

var logHead = []string{"table", "row", "epoch", "batch", "records", "at_s", "wait_s", "body_s"}

// logLine is a batch in a log: seconds since its setup began, that the consumer waited, and
// that it used the batch.
type logLine struct {
	Table   string  `json:"table"`
	Row     string  `json:"row"`
	Epoch   int     `json:"epoch"`
	Batch   int     `json:"batch"`
	Records int     `json:"records"`
	At      float64 `json:"at_s"`
	Wait    float64 `json:"wait_s"`
	Body    float64 `json:"body_s"`
}

// createLog makes the file, whose ending says what it is. Without a path it returns nil,
// which logs nothing.
func createLog(path string) (*batchLog, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	l := &batchLog{file: f, out: bufio.NewWriter(f)}
	if strings.EqualFold(filepath.Ext(path), ".csv") {
		l.csv = csv.NewWriter(l.out)
		l.err = l.csv.Write(logHead)
	}
	return l, nil
}

// add writes a line. An error is kept for close.
func (l *batchLog) add(table, row string, e batchEvent) {
	if l == nil || l.err != nil {
		return
	}
	line := logLine{table, row, e.Epoch, e.Batch, e.Records, e.At.Seconds(), e.Wait.Seconds(), e.Body.Seconds()}
	if l.csv == nil {
		l.err = json.NewEncoder(l.out).Encode(line)
		return
	}
	number := func(x float64) string { return strconv.FormatFloat(x, 'f', 9, 64) }
	l.err = l.csv.Write([]string{table, row, strconv.Itoa(e.Epoch), strconv.Itoa(e.Batch), strconv.Itoa(e.Records),
		number(line.At), number(line.Wait), number(line.Body)})
}

// close writes what is left.
func (l *batchLog) close() error {
	if l == nil {
		return nil
	}
	if l.csv != nil {
		l.csv.Flush()
		l.err = errors.Join(l.err, l.csv.Error())
	}
	if err := errors.Join(l.err, l.out.Flush(), l.file.Close()); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	return nil
}
