// The only file that loads OpenTelemetry. It is imported only if tracing is enabled.
import {
  diag, DiagLogLevel, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, type Context, type Span, type Tracer
} from '@opentelemetry/api'
import { ExportResultCode, W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import {
  BasicTracerProvider, BatchSpanProcessor, ConsoleSpanExporter, type ReadableSpan, type SpanExporter
} from '@opentelemetry/sdk-trace-base'
import { RpcError } from '../../../protocol/errors.ts'
import { isObject } from '../../../protocol/json.ts'
import type { TraceContext } from '../../../protocol/trace-context.ts'
import { waitAtMost } from '../../../protocol/wait-at-most.ts'
import type { FinishedCall, GatewayCall } from '../../gateway/index.ts'
import { OutageLog, type ReportOutage } from '../../base/limits/index.ts'

/** Length to which names and URIs in spans are truncated, in characters. */
const maxNameLength = 256
/** Max time to send the last spans at shutdown, in ms. */
const shutdownTime = 3_000

const exporters: Readonly<Record<string, () => SpanExporter>> = {
  'http/protobuf': () => new ProtobufExporter(),
  'http/json': () => new JsonExporter(),
  console: () => new ConsoleSpanExporter()
}

/** Maps methods to the names of the span attributes for their items (semantic conventions for MCP). */
const itemAttributes: Readonly<Record<string, string>> = {
  'tools/call': 'gen_ai.tool.name',
  'prompts/get': 'gen_ai.prompt.name',
  'resources/read': 'mcp.resource.uri'
}

/** The span of a call, and the trace context to send to the server. */
class CallTrace implements TraceContext {
  readonly span: Span
  readonly traceparent: string
  readonly tracestate: string | undefined

  constructor (span: Span, { traceparent = '', tracestate }: Record<string, string>) {
    this.span = span
    this.traceparent = traceparent
    this.tracestate = tracestate
  }
}

type TracedCall = Pick<GatewayCall, 'exchange' | 'provider' | 'item'>

interface TracingDeps {
  exporter: string
  version: string
  /** Masks the gateway's own credentials in a text. */
  mask: (text: string) => string
  reportOutage: ReportOutage
}

/** Wraps an exporter, and logs the start and the end of an outage instead of one line for each failed batch. */
class OutageLoggingExporter implements SpanExporter {
  readonly #exporter: SpanExporter
  readonly #outage: OutageLog

  constructor (exporter: SpanExporter, reportOutage: ReportOutage) {
    this.#exporter = exporter
    this.#outage = new OutageLog(reportOutage, { failing: 'traces cannot be sent', working: 'traces are sent' })
  }

  export (spans: ReadableSpan[], done: Parameters<SpanExporter['export']>[1]): void {
    this.#exporter.export(spans, ({ code, error }) => {
      if (code === ExportResultCode.SUCCESS) this.#outage.recordSuccess()
      else this.#outage.recordFailure(error?.message ?? 'the collector gave no reason')
      done({ code: ExportResultCode.SUCCESS })
    })
  }

  async forceFlush (): Promise<void> { await this.#exporter.forceFlush?.() }

  async shutdown (): Promise<void> {
    this.#outage.stop()
    await this.#exporter.shutdown()
  }
}

/**
 * Creates a span for each call, as a child of the client's span, and passes the context of the span to the server. The
 * SDK reads further settings (address, sampler, limits, resource) from OpenTelemetry's environment variables.
 */
export class CallTracer {
  readonly #provider: BasicTracerProvider
  readonly #tracer: Tracer
  readonly #mask: (text: string) => string
  readonly #propagator = new W3CTraceContextPropagator()

  constructor ({ exporter, version, mask, reportOutage }: TracingDeps) {
    this.#mask = mask
    const log = (message: string): void => { reportOutage('warn', `tracing: ${message}`) }
    const ignore = (): void => {}
    const logger = { error: log, warn: log, info: ignore, debug: ignore, verbose: ignore }
    diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true })
    const own = resourceFromAttributes({ 'service.name': 'tool-hub', 'service.version': version })
    this.#provider = new BasicTracerProvider({
      resource: defaultResource().merge(own).merge(detectResources({ detectors: [envDetector] })),
      spanProcessors: [new BatchSpanProcessor(
        new OutageLoggingExporter((exporters[exporter] ?? (() => new ProtobufExporter()))(), reportOutage)
      )]
    })
    this.#tracer = this.#provider.getTracer('tool-hub', version)
  }

  /**
   * Begins the span of a call.
   * @param startTime in ms since 1970; by default, now
   * @returns the trace context to send to the server
   */
  beginSpan (call: TracedCall, startTime?: number): CallTrace {
    const { exchange: { method }, provider, item } = call
    const named = item === undefined ? undefined : this.#mask(item).slice(0, maxNameLength)
    // The query of a URI may contain credentials.
    const shown = method === 'resources/read' ? named?.split(/[?#]/, 1)[0] : named
    const attribute = itemAttributes[method]
    const parent = this.#parentOf(call)
    const span =
      this.#tracer.startSpan(shown === undefined || method === 'resources/read' ? method : `${method} ${shown}`, {
        kind: SpanKind.SERVER,
        startTime,
        attributes: {
          'rpc.system': 'jsonrpc',
          'mcp.method.name': method,
          'toolhub.server': provider,
          ...(method === 'tools/call' && { 'gen_ai.operation.name': 'execute_tool' }),
          ...(attribute !== undefined && shown !== undefined && { [attribute]: shown })
        }
      }, parent)
    const carrier: Record<string, string> = {}
    this.#propagator.inject(
      trace.setSpan(parent, span), carrier, { set: (target, name, value) => { target[name] = value } }
    )
    return new CallTrace(span, carrier)
  }

  /** Ends the span of a call. If a hook refused the call before its span began, the span begins here. */
  endSpan (call: FinishedCall): void {
    const { outcome, isToolError, error, duration } = call
    // If the caller may not see the item, nothing says that there is one.
    if (call.trace === undefined && error instanceof RpcError && error.reason.startsWith('unknown-')) return
    const { span } = call.trace instanceof CallTrace ? call.trace : this.beginSpan(call, Date.now() - duration)
    const failed = outcome === 'ok' && isToolError
    span.setAttribute('toolhub.outcome', failed ? 'tool_error' : outcome)
    if (failed) span.setAttribute('error.type', 'tool_error')
    if (error !== undefined) {
      span.setAttribute('error.type', error instanceof RpcError ? error.reason : 'internal')
      if (error instanceof RpcError) span.setAttribute('rpc.jsonrpc.error_code', error.code)
    }
    if (failed || error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR })
    span.end()
  }

  /** Exports the remaining spans. Resolves at the latest after `shutdownTime`. */
  async close (): Promise<void> {
    await waitAtMost(shutdownTime, this.#provider.shutdown().catch(() => {}))
  }

  /** Returns the context of the client's span, from `_meta` or else from the headers of the HTTP request. */
  #parentOf ({ exchange }: TracedCall): Context {
    const { _meta: meta } = exchange.params
    const carrier = isObject(meta) && typeof meta.traceparent === 'string' ? meta : exchange.headers
    return this.#propagator.extract(ROOT_CONTEXT, carrier, {
      get: (from, name) => {
        const value = from[name]
        return typeof value === 'string' ? this.#mask(value) : undefined
      },
      keys: (from) => Object.keys(from)
    })
  }
}
