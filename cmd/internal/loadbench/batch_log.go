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

// batchLog writes a line for each batch of each setup: CSV with a head, or JSON lines. A nil
// *batchLog writes nothing. It keeps its first error for close, so that measuring goes on.
type batchLog struct {
	file *os.File
	out  *bufio.Writer
	csv  *csv.Writer // nil writes JSON lines
	err  error
}

// logFormats lists the endings that a log's name may have.
var logFormats = []string{".csv", ".jsonl"}

// logHead has the names of the columns, as in the JSON of logLine.
var logHead = []string{"table", "row", "epoch", "batch", "records", "at_s", "wait_s", "body_s"}

// logLine is a batch in a log. Times are in seconds: since the setup began, that the consumer
// waited for the batch, and that it used the batch.
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

// createLog creates the file, whose ending decides the format. If path is "", it returns nil.
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

// add writes the line of a batch.
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

// close writes the buffered lines, closes the file and returns the first error.
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
