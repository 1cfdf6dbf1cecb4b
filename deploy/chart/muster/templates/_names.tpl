{{/* The name of everything, cut to what a label may hold. */}}
{{- define "muster.name" -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "muster.account" -}}
{{- default (include "muster.name" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "muster.selector" -}}
app.kubernetes.io/name: muster
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "muster.labels" -}}
{{ include "muster.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "muster.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{- define "muster.inside" -}}
{{ include "muster.scheme" . }}://{{ include "muster.name" . }}.{{ .Release.Namespace }}.svc:{{ .Values.service.port }}
{{- end -}}

{{/* What the hub's port speaks, which is also its name. */}}
{{- define "muster.scheme" -}}
{{- ternary "https" "http" (not (empty .Values.tls.secretName)) -}}
{{- end -}}

{{/* The scheme of probes; HTTP is the default. */}}
{{- define "muster.probe-scheme" -}}
{{- if .Values.tls.secretName -}}
scheme: HTTPS
{{- end -}}
{{- end -}}

{{/* How firmware reaches the port without TLS: at the host of the base URL. */}}
{{- define "muster.plain-url" -}}
{{- $host := get (urlParse (include "muster.base-url" .)) "hostname" -}}
{{- $bracketed := ternary (printf "[%s]" $host) $host (contains ":" $host) -}}
{{- default (printf "http://%s:%d" $bracketed (int .Values.tls.plain.port)) .Values.tls.plain.url -}}
{{- end -}}

{{- define "muster.base-url" -}}
{{- default (include "muster.inside" .) .Values.hub.baseUrl -}}
{{- end -}}

{{/* Names of the hub besides that of its base URL: the Service's short ones are known to the hub as such. */}}
{{- define "muster.allowed-hosts" -}}
{{- $names := list (printf "%s.%s" (include "muster.name" .) .Release.Namespace) -}}
{{- if and .Values.ingress.enabled .Values.ingress.host -}}
{{- $names = append $names .Values.ingress.host -}}
{{- end -}}
{{- concat $names .Values.hub.allowedHosts | uniq | toJson -}}
{{- end -}}

{{/* All of them when none is named. */}}
{{- define "muster.controllers" -}}
{{- with .Values.operator.controllers -}}
- --controllers={{ join "," . }}
{{ end -}}
{{- range .Values.operator.namespaces -}}
- --namespace={{ . }}
{{ end -}}
{{- end -}}

{{/* The namespace of the Secret that says where Ironic is. */}}
{{- define "muster.ironic" -}}
{{- default "openshift-machine-api" (first (splitList "/" .Values.operator.ironicConfig)) -}}
{{- end -}}

{{/* Pods of the same namespace when nobody is named. */}}
{{- define "muster.metrics-from" -}}
{{- toYaml (default (list (dict "podSelector" dict)) .Values.networkPolicy.metricsFrom) -}}
{{- end -}}

{{- define "muster.claim" -}}
{{- default (include "muster.name" .) .Values.persistence.existingClaim -}}
{{- end -}}

{{/* What both kinds of pods share. OpenShift chooses the group of volumes itself, and refuses pods that choose another. */}}
{{- define "muster.pod-security" -}}
runAsNonRoot: true
{{- if and .Values.fsGroup (not (.Capabilities.APIVersions.Has "security.openshift.io/v1")) }}
fsGroup: {{ int .Values.fsGroup }}
fsGroupChangePolicy: OnRootMismatch
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "muster.container-security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "muster.placement" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}
