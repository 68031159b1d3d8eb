package change

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/internal/npy"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/tensor"
)

// numberList matches a list of numbers and ranges such as "3,7,10-20". Any other text is the name
// of a file; a file whose name is such a list needs "./" before its name.
var numberList = regexp.MustCompile(`^[0-9][0-9,\s-]*$`)

// recordNumbers returns the record numbers of --records: a list such as 3,7,10-20, the content of a
// file, or standard input for "-". n is the number of records, which bounds how many numbers are
// kept in memory; edit.Dataset.Choose reports numbers that are out of range or given twice.
func recordNumbers(text string, stdin io.Reader, n int64) ([]int64, error) {
	if text == "-" {
		return readNumbers(stdin, n)
	}
	if numberList.MatchString(text) {
		return listedNumbers(text, n)
	}
	f, err := vfs.OpenRegular(text)
	if err != nil {
		return nil, fmt.Errorf("neither numbers, such as 3,7,10-20, nor a file: %w", err)
	}
	numbers, err := readNumbers(f, n)
	return numbers, errors.Join(err, f.Close())
}

// listedNumbers returns the numbers of a list such as 3,7,10-20. A range includes both its ends.
func listedNumbers(text string, n int64) (numbers []int64, err error) {
	for word := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(word), "-")
		a, err := strconv.ParseInt(first, 10, 64)
		b := a
		if err == nil && isRange {
			b, err = strconv.ParseInt(last, 10, 64)
		}
		if err != nil || b < a {
			return nil, fmt.Errorf("%q is neither a number nor a range such as 10-20, which includes both", word)
		}
		if b >= n {
			a = b // one number out of range is enough for Choose to report; the whole range might not fit into memory
		}
		for ; a <= b; a++ {
			numbers = append(numbers, a)
		}
	}
	return numbers, nil
}

// readNumbers reads a .npy file of integers, or text with a number in each line. The first bytes
// tell which: the magic of .npy starts with the byte 0x93, which no number has.
func readNumbers(r io.Reader, n int64) ([]int64, error) {
	in := bufio.NewReader(r)
	if start, _ := in.Peek(len(npy.Magic)); string(start) == npy.Magic {
		return arrayNumbers(in, n)
	}
	var numbers []int64
	lines := bufio.NewScanner(in)
	for at := 1; lines.Scan(); at++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		number, err := strconv.ParseInt(line, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("line %d: %.40q is not the number of a record; write one a line", at, line)
		}
		if numbers = append(numbers, number); int64(len(numbers)) > n {
			return nil, tooMany(n)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(numbers) == 0 {
		return nil, errors.New("it has no number; write one a line")
	}
	return numbers, nil
}

// arrayNumbers reads a .npy file with a one-dimensional array of integers, of either byte order.
func arrayNumbers(r io.Reader, n int64) ([]int64, error) {
	h, err := npy.Read(r)
	if err != nil {
		return nil, err
	}
	if len(h.Shape) != 1 || h.Shape[0] == 0 || h.DType.IsFloat() || h.DType == tensor.Bool {
		return nil, fmt.Errorf("an array of %v with shape %d; numbers of records are integers of one dimension", h.DType,
			h.Shape)
	}
	if h.Shape[0] > n {
		return nil, tooMany(n)
	}
	var numbers []int64
	element := make([]byte, h.DType.Size())
	for i := range h.Shape[0] {
		if _, err := io.ReadFull(r, element); err != nil {
			return nil, fmt.Errorf("element %d of %d: %w", i, h.Shape[0], err)
		}
		if h.BigEndian {
			slices.Reverse(element)
		}
		number, ok := h.DType.Read(element).Int64()
		if !ok {
			return nil, fmt.Errorf("element %d of %d: %s is larger than any number of a record", i, h.Shape[0],
				h.DType.Text(element))
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}

// tooMany is the error for more numbers than the dataset has records.
func tooMany(n int64) error {
	return fmt.Errorf("there are more numbers than records: the dataset has %d; give each number once", n)
}
