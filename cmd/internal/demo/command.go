// Package demo has the command demo. It draws images of shapes, runs preprocess, inspect, verify
// and report on them as a user would, and trains a small network from the dataset in Go. It needs
// no network connection, no GPU and no files of the user's, so it is the first test of an
// installation.
//
// Everything is written to one folder, which demo recognizes by the file .penstock-demo: it
// overwrites its own files, and never anybody else's.
package demo

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
)

const long = `Make 1,200 images of shapes, a dataset of them, a report about it, and train a small network, all in
FOLDER (penstock-demo if none is named), in about ten seconds. An earlier demo in FOLDER is
overwritten, and a folder with anything else in it is refused.`

// Command returns the command demo. root returns a new command tree, by which demo runs the other
// commands: a function, because this package is imported by the tree's package.
func Command(root func() *cobra.Command) *cobra.Command {
	var quietly bool
	cmd := cli.Command(&cobra.Command{
		Use: "demo [flags] [FOLDER]", Short: "Make images and a dataset, and train from it", Long: long,
		Example: "  penstock demo\n  penstock demo --no-open /tmp/demo",
		PreRunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usage("one FOLDER at most")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			d := demo{folder: "penstock-demo", root: root, cmd: cmd, out: cmd.OutOrStdout(), open: !quietly}
			if len(args) > 0 {
				d.folder = args[0]
			}
			return d.run()
		},
	})
	cmd.Flags().BoolVar(&quietly, "no-open", false, "do not open the report in a browser")
	return cmd
}

// demo is one run of the command.
type demo struct {
	folder string
	root   func() *cobra.Command
	cmd    *cobra.Command
	out    io.Writer
	open   bool
}

// path returns the path of a file in the demo's folder.
func (d *demo) path(name string) string { return filepath.Join(d.folder, name) }

// run draws, prepares, inspects and trains.
func (d *demo) run() error {
	fmt.Fprintf(d.out, "Drawing %d images into %s\n", perClass*len(classes), d.path("raw"))
	if err := draw(d.folder); err != nil {
		return err
	}
	dataset, report := d.path("shapes.h5"), d.path("report.html")
	for _, args := range [][]string{
		{"preprocess", "--quiet", "--overwrite", "--resize", fmt.Sprintf("%dx%d", side, side), "--split",
			"train=0.8,test=0.2", d.path("raw"), dataset},
		{"inspect", dataset},
		{"inspect", "verify", dataset},
		{"inspect", "report", "--quiet", "-o", report, dataset},
	} {
		if err := d.command(args); err != nil {
			return err
		}
	}
	fmt.Fprintf(d.out, "\nTraining a network of two layers on the split train\n")
	if err := train(d.cmd.Context(), dataset, d.out); err != nil {
		return err
	}
	err := cli.Screen(d.out, func(w io.Writer) error {
		_, err := fmt.Fprintf(
			w, "\nAll of it is in %s: the images in raw, the dataset shapes.h5, and report.html about it,\n"+
				"whose first checks note that some shapes look alike.\n"+
				"Next: penstock preprocess YOUR_IMAGES mine.h5 --resize 256 --crop 224\n", d.folder)
		return err
	})
	if err != nil {
		return err
	}
	if d.open {
		show(report)
	}
	return nil
}

// command prints a command line and runs it in this process, through the same code as a user's
// command. The printed line is broken so that it can be copied into a shell.
func (d *demo) command(args []string) error {
	line := cli.Fit("$ penstock "+strings.Join(args, " "), cli.TerminalWidth(d.out)-len(" \\"))
	fmt.Fprintf(d.out, "\n%s\n", strings.ReplaceAll(line, "\n", " \\\n"))
	root := d.root()
	root.SetContext(d.cmd.Context())
	if code := cli.Run(root, args, strings.NewReader(""), d.out, d.cmd.ErrOrStderr()); code != cli.ExitDone {
		return fmt.Errorf("penstock %s ended with exit code %d", args[0], code)
	}
	return nil
}

// show opens a page in the user's browser if there is a screen. Errors are ignored: the page
// exists, and its path has been printed.
func show(page string) {
	name := "xdg-open"
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name = "explorer"
	default:
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return
		}
	}
	if cmd := exec.Command(name, page); cmd.Start() == nil {
		_ = cmd.Process.Release()
	}
}
