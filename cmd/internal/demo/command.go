// Package demo is the command demo: it makes images, a dataset of them, a report, and trains a
// small network, without a network and without files of the user's.
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
FOLDER (penstock-demo if none is named). It needs nothing but this program, and about ten seconds.
An earlier demo in FOLDER is overwritten, and a folder with anything else in it is refused.`

// Command returns the command. root makes the tree whose other commands it runs.
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

// demo is one run.
type demo struct {
	folder string
	root   func() *cobra.Command
	cmd    *cobra.Command
	out    io.Writer
	open   bool
}

func (d *demo) path(name string) string { return filepath.Join(d.folder, name) }

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
			w, "\nAll of it is in %s: the images in raw, the dataset shapes.h5, and report.html about it.\n"+
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

// command runs another command as a user would.
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

// show opens a page in the user's browser if there is a screen. If that fails, the page exists
// all the same.
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
