{{- define "spillway.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 57 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 57 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "spillway.selector" -}}
app.kubernetes.io/name: spillway
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "spillway.labels" -}}
{{ include "spillway.selector" . }}
app.kubernetes.io/part-of: spillway
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* Replicas that run at least. */}}
{{- define "spillway.replicas" -}}
{{- ternary .Values.autoscaling.minReplicas .Values.replicas .Values.autoscaling.enabled -}}
{{- end -}}

{{/* spillway.yaml: the values, the certificate of `tls`, and expectedPods if several replicas share Redis. */}}
{{- define "spillway.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- if and (hasKey $config "redis") (not (hasKey $config "expectedPods")) -}}
{{- $_ := set $config "expectedPods" (include "spillway.replicas" . | int) -}}
{{- end -}}
{{- if .Values.tls.secretName -}}
{{- $server := get $config "server" | default dict -}}
{{- $tls := dict "cert" "file:/etc/spillway-tls/tls.crt" "key" "file:/etc/spillway-tls/tls.key" -}}
{{- $_ := set $config "server" (set $server "tls" $tls) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* Milliseconds of a duration: 250, "100ms", "5s", "1.5m", "2h". */}}
{{- define "spillway.milliseconds" -}}
{{- if kindIs "string" . -}}
{{- $units := dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000 "d" 86400000 -}}
{{- mulf (regexFind "[0-9.]+" . | float64) (get $units (regexFind "[a-z]+" .)) -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end -}}

{{/* preStop, drain.delayMs, drain.graceMs, and 8 s for the rest of the shutdown. Defaults as in the gateway. */}}
{{- define "spillway.terminationGracePeriodSeconds" -}}
{{- $drain := get .Values.config "drain" | default dict -}}
{{- $delay := ternary $drain.delayMs 0 (hasKey $drain "delayMs") -}}
{{- $grace := ternary $drain.graceMs 30000 (hasKey $drain "graceMs") -}}
{{- $drainMs := addf (include "spillway.milliseconds" $delay | float64) (include "spillway.milliseconds" $grace | float64) -}}
{{- add (divf $drainMs 1000 | ceil | int) .Values.preStopSeconds 8 -}}
{{- end -}}
