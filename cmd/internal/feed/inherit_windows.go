package feed

import (
	"context"
	"syscall"

	"golang.org/x/sys/windows"
)

// gone are the errors of a connection whose other end has ended.
var gone = []error{windows.WSAECONNRESET, windows.WSAECONNABORTED, windows.ERROR_BROKEN_PIPE,
	windows.ERROR_NETNAME_DELETED}

// closeOnExec keeps a handle from programs that feed starts.
func closeOnExec(handle int) { syscall.CloseOnExec(syscall.Handle(handle)) }

// watchParent watches nothing: children of the client's process do not inherit the connection here, so that it ends
// with that process.
func watchParent(context.Context, func(error)) bool { return false }
