# syntax=docker/dockerfile:1
# One static program, in an image with nothing else in it: no shell, no package
# manager, no C library. docs/container.md says how it is built and run.

# Pin it by digest where builds have to be the same for ever:
# --build-arg BUILD_IMAGE=docker.io/library/golang:1.26.8-bookworm@sha256:...
ARG BUILD_IMAGE=docker.io/library/golang:1.26.8-bookworm

# The compiler runs on the machine that builds, and builds for the other.
FROM --platform=$BUILDPLATFORM ${BUILD_IMAGE} AS build
ARG GOPROXY=https://proxy.golang.org,direct
ENV GOTOOLCHAIN=local GOPROXY=${GOPROXY}
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=
ARG REVISION=
# timetzdata: the time zones are in the program, so that TZ works; the folder
# of the system's would be twice as large.
RUN CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} go build -trimpath -buildvcs=false -tags timetzdata \
    -ldflags "-s -w -buildid= -X korvet-offload/internal/command.linkedVersion=${VERSION} -X korvet-offload/internal/command.linkedRevision=${REVISION}" \
    -o /out/korvet-offload .
# What a program expects of a system, and scratch does not have.
RUN mkdir -p /out/etc/ssl/certs /spool \
 && cp /etc/ssl/certs/ca-certificates.crt /out/etc/ssl/certs/ \
 && echo 'korvet-offload:x:65532:65532:korvet-offload:/:/korvet-offload' > /out/etc/passwd \
 && echo 'korvet-offload:x:65532:' > /out/etc/group \
 && cp LICENSE /out/

FROM scratch
COPY --from=build /out/ /
# Files too large for memory grow here. It is a volume, so that the rest can be
# read-only; TMPDIR, and not spool-dir, so that a settings file can name another.
COPY --from=build --chown=65532:65532 /spool /spool
VOLUME /spool
ENV TMPDIR=/spool

# By number: Kubernetes' runAsNonRoot can't tell who a name is.
USER 65532:65532

# The server listens on the container's loopback unless
# KORVET_STORAGE_OFFLOAD_HTTP_ADDRESS, or the settings, say otherwise.
EXPOSE 9477
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 CMD ["/korvet-offload", "healthcheck"]
ENTRYPOINT ["/korvet-offload"]
CMD ["run"]

# Last, so that they change no layer.
ARG VERSION=
ARG REVISION=
ARG CREATED=
LABEL org.opencontainers.image.title="korvet-offload" \
      org.opencontainers.image.description="Moves sealed segments of Redis Streams to an object store" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}"
