// Package k8sverify holds what is below k8s against a real kube-apiserver: every
// overlay and every rendering of the chart is applied as a dry run at the
// server, which defaults, validates and admits as a cluster does; Pods must pass
// the restricted Pod Security Standard, and the ServiceAccount may do nothing.
//
// It is a module of its own, since it builds the server. Nothing is scheduled:
// there are no nodes.
package k8sverify
