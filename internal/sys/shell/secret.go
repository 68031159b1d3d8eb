package shell

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// secretPrefix begins the names of the environment variables that pass secret arguments to a child process. Every user of
// the machine can read command lines, and files outlive a process that is killed; the environment is shown to the user of
// the process alone. In a command line, or in a temporary file for the child, stands the name of the variable.
const secretPrefix = "PENSTOCK_URL_"

var secretValues = make(map[string]string)

// TakeSecrets takes the variables out of the environment, so that other child processes do not have them. It is called
// once, first.
func TakeSecrets() {
	for _, pair := range os.Environ() {
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, secretPrefix) {
			secretValues[name] = value
			_ = os.Unsetenv(name)
		}
	}
}

// Secret returns the value of the variable with a name; a text that is no such name is returned unchanged.
func Secret(text string) string {
	if value, ok := secretValues[text]; ok {
		return value
	}
	return text
}

// Secrets returns the values of all texts.
func Secrets(texts []string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = Secret(text)
	}
	return out
}

// HideSecrets moves URLs from the arguments of a command, which is about to be started, to its environment.
func HideSecrets(cmd *exec.Cmd) {
	env := cmd.Environ()
	for i, arg := range cmd.Args {
		if strings.Contains(arg, "://") {
			cmd.Args[i] = secretPrefix + strconv.Itoa(i)
			env = append(env, cmd.Args[i]+"="+arg)
		}
	}
	cmd.Env = env
}
