{{- define "korvet-offload.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "korvet-offload.fullname" -}}
{{- $name := include "korvet-offload.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "korvet-offload.selectorLabels" -}}
app.kubernetes.io/name: {{ include "korvet-offload.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "korvet-offload.labels" -}}
{{ include "korvet-offload.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "korvet-offload.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "korvet-offload.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "korvet-offload.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{- /* 7/8 of limits.memory in bytes; nothing where there is no limit. */}}
{{- define "korvet-offload.goMemLimit" -}}
{{- $limit := dig "limits" "memory" "" .Values.resources }}
{{- if $limit }}
{{- $number := regexFind "^[0-9]+([.][0-9]+)?" $limit }}
{{- $unit := trimPrefix $number $limit }}
{{- $units := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 }}
{{- if not (hasKey $units $unit) }}
{{- fail (printf "resources.limits.memory %q: want a number and one of Ki, Mi, Gi, Ti, k, M, G, T" $limit) }}
{{- end }}
{{- divf (mulf $number (get $units $unit) 7) 8 | floor | int64 }}
{{- end }}
{{- end }}

{{- /* What a container needs to find its settings; also of the test. */}}
{{- define "korvet-offload.env" -}}
- name: KORVET_OFFLOAD_CONFIG
  value: /etc/korvet-offload/settings/korvet-offload.yml
{{- if .Values.existingSecret }}
- name: KORVET_OFFLOAD_SECRETS_DIR
  value: /etc/korvet-offload/secrets
{{- end }}
# The kubelet and Prometheus come from outside of the Pod.
- name: KORVET_STORAGE_OFFLOAD_HTTP_ADDRESS
  value: {{ printf ":%v" .Values.http.port | quote }}
{{- if .Values.http.tlsSecret }}
- name: KORVET_STORAGE_OFFLOAD_HTTP_CERT_FILE
  value: /etc/korvet-offload/tls/tls.crt
- name: KORVET_STORAGE_OFFLOAD_HTTP_KEY_FILE
  value: /etc/korvet-offload/tls/tls.key
{{- end }}
{{- if gt (int .Values.shards) 1 }}
- name: KORVET_STORAGE_OFFLOAD_SHARDS
  value: {{ .Values.shards | quote }}
{{- end }}
{{- with include "korvet-offload.goMemLimit" . }}
- name: GOMEMLIMIT
  value: {{ . | quote }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "korvet-offload.volumeMounts" -}}
- name: settings
  mountPath: /etc/korvet-offload/settings
  readOnly: true
{{- if .Values.existingSecret }}
- name: secrets
  mountPath: /etc/korvet-offload/secrets
  readOnly: true
{{- end }}
{{- if .Values.http.tlsSecret }}
- name: tls
  mountPath: /etc/korvet-offload/tls
  readOnly: true
{{- end }}
- name: spool
  mountPath: /spool
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "korvet-offload.volumes" -}}
- name: settings
  configMap:
    name: {{ include "korvet-offload.fullname" . }}
{{- with .Values.existingSecret }}
- name: secrets
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- with .Values.http.tlsSecret }}
- name: tls
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
- name: spool
  emptyDir:
    sizeLimit: {{ .Values.spool.sizeLimit }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "korvet-offload.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "korvet-offload.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "korvet-offload.scheme" -}}
{{- ternary "HTTPS" "HTTP" (ne .Values.http.tlsSecret "") }}
{{- end }}
