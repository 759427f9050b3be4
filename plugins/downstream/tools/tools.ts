import type { IncomingHttpHeaders } from 'node:http'
import { lostServerClause } from '../../../protocol/errors.ts'
import { memberOf, withMembers } from '../../../protocol/json.ts'
import { type Access, makeView, chargedOwnerOf, type Principal, type View } from '../../settings/index.ts'
import type { FindCurrentPrincipal } from '../../identity/index.ts'
import { errors, noSuchError } from '../../base/errors/index.ts'
import type { Gateway } from '../../gateway/index.ts'
import { type DisconnectSignal, createSessionlessClient, PlainHttpExchange } from './exchange.ts'
import { parseBodyArguments, parseQueryArguments } from './parse-arguments.ts'
import { resultEnvelopeRemovalChanges, withoutResultEnvelope, type SelectHeaders } from './forwarding.ts'
import { InFlightCalls } from './in-flight-calls.ts'
import { RestSessions } from './sessions.ts'
import { findToolInputSchema, type ToolInputSchema } from './tool-input.ts'
import { downstreamLimits } from '../limits.ts'

export interface HttpCaller {
  readonly principal: Principal
  readonly headers: IncomingHttpHeaders
  /** The caller's IP address. */
  readonly address: string
  readonly disconnect: DisconnectSignal
}

/** A tool as a route identifies it. `name`: the group or server in the route's path, if any. */
export interface ToolAddress { server: string, tool: string, name?: string }

/** The query of the URL without its question mark, and the body if there is one. */
interface SentArguments { search: string, body?: string }

/** Runs tools, fills in prompts and reads resources for plain HTTP callers. */
export class HttpTools {
  readonly #gateway: Gateway
  readonly #access: Access
  readonly #selectHeaders: SelectHeaders
  readonly #sessions: RestSessions
  readonly #calls: InFlightCalls

  constructor (gateway: Gateway, access: Access, selectHeaders: SelectHeaders) {
    this.#gateway = gateway
    this.#access = access
    this.#selectHeaders = selectHeaders
    this.#calls = new InFlightCalls(gateway)
    const { restSessionIdle: idle, restSessions: maxSessions } = downstreamLimits
    this.#sessions =
      new RestSessions({ idle, maxSessions }, (client) => { gateway.removeClient(client).catch(() => {}) })
  }

  /**
   * Calls a tool of one server.
   * @param name the name of the tool on the route of the server
   * @returns the text of the tool's result, even if the tool failed, with `toolName` and `arguments` added
   * @throws NoSuch for a server or tool that the caller cannot see, InvalidInput for arguments that do not fit the
   * schema, and the errors of `InFlightCalls.run`
   */
  async call (caller: HttpCaller, server: string, name: string, args: Record<string, unknown>): Promise<string> {
    const view = this.#filtered(this.#access.viewOfServer(caller.principal, server), caller)
    const input = this.#input(view, name) ??
      await this.#findAfterListing(caller, view, server, { name, arguments: args }, () => this.#input(view, name))
    const result = await this.#convertAndCall(caller, view, server, input, name, args)
    if (!result.trimStart().startsWith('{')) {
      throw new errors.UpstreamFailed(
        `Server ${JSON.stringify(server)} returned something that is not the result of a tool`
      )
    }
    const added = { toolName: JSON.stringify(name), arguments: JSON.stringify(args) }
    return withMembers(result, { ...resultEnvelopeRemovalChanges(result), ...added })
  }

  /**
   * Checks that a server may have a prompt. A server whose prompts are not known yet may have it.
   * @throws NoSuch for a server that the caller cannot see, and for a prompt that the server is known not to have
   */
  requirePrompt (caller: Pick<HttpCaller, 'principal' | 'address'>, server: string, name: string): void {
    const view = this.#filtered(this.#access.viewOfServer(caller.principal, server), caller)
    const client = createSessionlessClient(view)
    const isKnown = this.#gateway.surface(view, client).capabilities.has(server)
    if (isKnown && !this.#gateway.lookUp(view, client, 'prompts', name)) throw noSuchError('prompt', name)
  }

  /**
   * Fills in a prompt of one server.
   * @param args strings, as MCP requires; other values are sent as their JSON text
   * @returns the text of the server's result; missing `messages` become an empty array
   * @throws the errors of `call`
   */
  async getFilledPrompt (
    caller: HttpCaller, server: string, name: string, args: Record<string, unknown>
  ): Promise<string> {
    const view = this.#filtered(this.#access.viewOfServer(caller.principal, server), caller)
    const texts = Object.fromEntries(
      Object.entries(args).map(([key, value]) => [key, typeof value === 'string' ? value : JSON.stringify(value)])
    )
    const result = (await this.#send(caller, view, server, 'prompts/get', { name, arguments: texts })).trimStart()
    // The result is not parsed, since it may be many megabytes.
    const text = result.startsWith('{') ? withoutResultEnvelope(result) : '{}'
    return memberOf(text, 'messages')?.startsWith('[') === true ? text : withMembers(text, { messages: '[]' })
  }

  /**
   * Reads a resource of any server that the caller sees, or a built-in one.
   * @returns the text of the server's result
   * @throws the errors of `InFlightCalls.run`
   */
  async readResourceByUri (caller: HttpCaller, uri: string): Promise<string> {
    const { principal, headers, address } = caller
    const view = this.#filtered(makeView(principal, { kind: 'global' }), caller)
    const exchange = new PlainHttpExchange(view, 'resources/read', { uri }, { headers, address })
    const server =
      await this.#gateway.findResourceProvider(exchange).catch((error: unknown) => {
        throw this.#calls.toHttpError(error, '', exchange)
      })
    const result = await this.#send(caller, view, server, 'resources/read', { uri })
    if (!result.trimStart().startsWith('{')) {
      throw new errors.UpstreamFailed(
        `Server ${JSON.stringify(server)} returned something that is not the content of a resource`
      )
    }
    return withoutResultEnvelope(result)
  }

  /**
   * Runs a tool on an open route. The arguments are first checked against the tool's input schema.
   * @returns the text of the tool's result, even if the tool failed
   * @throws the errors of `call`; NoSuch both for a missing tool and for a tool that the caller may not use
   */
  async callOnOpenRoute (
    caller: HttpCaller, { server, tool, name }: ToolAddress, { search, body }: SentArguments
  ): Promise<string> {
    const query = parseQueryArguments(search)
    const { group } = query
    // If the tool has an argument named `group`, the query parameter `group` is that argument.
    const isArgument = body === undefined && this.#inputOf(server, tool)?.hasParameter('group') === true
    const isGroupQuery = name === undefined && group !== undefined && !isArgument
    const openView = this.#openView(caller.principal, server, name, isGroupQuery ? group : undefined)
    const view = this.#filtered(openView, caller)
    if (isGroupQuery && typeof group !== 'string') {
      throw new errors.InvalidInput('The query names several groups; name one')
    }
    if (isGroupQuery) delete query.group
    let args: Record<string, unknown> | undefined
    const read = (): Record<string, unknown> => {
      args ??= body === undefined ? query : parseBodyArguments(body)
      return args
    }
    const exposed = this.#exposedName(view, server, tool)
    const { providers } = this.#gateway.surface(view, createSessionlessClient(view))
    if (exposed === undefined && !providers.includes(server)) throw noSuchError('server', server)
    try {
      const known = exposed ?? await this.#findExposedName(caller, view, server, tool, read)
      const input = this.#inputOf(server, tool)
      return withoutResultEnvelope(await this.#convertAndCall(caller, view, server, input, known, read()))
    } catch (error) {
      // The error names the tool as the route does. The view may have another name for it.
      throw error instanceof errors.NoSuch ? noSuchError('tool', tool) : error
    }
  }

  /** Ends the calls and sessions of callers that have lost their access. */
  endWithoutAccess (standingOf: FindCurrentPrincipal): void {
    this.#sessions.revoke((principal) => standingOf(principal) !== undefined)
    this.#calls.endWithoutAccess((view, server) => {
      const principal = standingOf(view.principal)
      if (!principal) return new errors.Unauthorized('Your access was withdrawn while the call ran')
      return this.#access.canSeeServer(view, principal, server) ? undefined : lostServerClause
    })
  }

  /** Waits up to `timeout` ms for the running calls, then cancels the rest. */
  async close (timeout: number): Promise<void> {
    this.#sessions.close()
    await this.#calls.close(timeout)
  }

  #openView (principal: Principal, server: string, name: string | undefined, group: unknown): View {
    if (typeof group === 'string') return this.#access.viewOfOpenRoute(principal, { group }, 'group')
    return name === undefined
      ? this.#access.viewOfOpenRoute(principal, { server }, 'server')
      : this.#access.viewOfOpenRoute(principal, { name }, 'group or server')
  }

  /** Returns a view without the items that hooks hide from its caller. */
  #filtered (view: View, { address }: Pick<HttpCaller, 'address'>): View {
    return this.#gateway.filteredView(view, address)
  }

  /** Returns the input schema of a tool, by its name in the view. */
  #input (view: View, name: string): ToolInputSchema | undefined {
    const target = this.#gateway.lookUp(view, createSessionlessClient(view), 'tools', name)
    return target && this.#inputOf(target.provider, target.key)
  }

  /** Returns the input schema of a tool, by the name that its server uses. */
  #inputOf (server: string, tool: string): ToolInputSchema | undefined {
    return findToolInputSchema(this.#gateway.catalogue(server), tool)
  }

  /** Returns the name of a tool in a view; undefined if the view does not show it. */
  #exposedName (view: View, server: string, tool: string): string | undefined {
    return this.#gateway.exposedName(view, createSessionlessClient(view), 'tools', server, tool)
  }

  /**
   * Waits until the tools of the server are known, and returns the result of `#exposedName`. Errors of `read` are
   * ignored, so that an unreadable body is reported only for an existing tool.
   * @throws NoSuch, and the errors that `InFlightCalls.toHttpError` returns
   */
  async #findExposedName (
    caller: HttpCaller, view: View, server: string, tool: string, read: () => Record<string, unknown>
  ): Promise<string> {
    const params = { name: tool, arguments: tryRun(read) }
    const find = (): string | undefined => this.#exposedName(view, server, tool)
    const exposed = await this.#findAfterListing(caller, view, server, params, find)
    if (exposed === undefined) throw noSuchError('tool', tool)
    return exposed
  }

  /**
   * Waits until the tools of a server are known, and returns the result of `look`.
   * @throws the errors that `InFlightCalls.toHttpError` returns
   */
  async #findAfterListing<Found> (
    { headers, address }: HttpCaller,
    view: View,
    server: string,
    params: { name: string, arguments: unknown },
    look: () => Found
  ): Promise<Found> {
    const exchange = new PlainHttpExchange(view, 'tools/call', params, { headers, address })
    try {
      await this.#gateway.waitForLists(exchange, server, params.name)
    } catch (error) {
      throw this.#calls.toHttpError(error, server, exchange)
    }
    return look()
  }

  /**
   * Converts arguments to the tool's schema, and calls the tool.
   * @param name the name of the tool in the view
   * @throws InvalidInput with the invalid arguments
   */
  async #convertAndCall (
    caller: HttpCaller,
    view: View,
    server: string,
    input: ToolInputSchema | undefined,
    name: string,
    given: Record<string, unknown>
  ): Promise<string> {
    if (!input) return await this.#send(caller, view, server, 'tools/call', { name, arguments: given })
    const { args, text } = await input.convert(given, chargedOwnerOf(caller.principal, caller.address))
    const paramsText = `{"name":${JSON.stringify(name)},"arguments":${text}}`
    return await this.#send(caller, view, server, 'tools/call', { name, arguments: args }, paramsText)
  }

  /**
   * Sends one request, in the session that `x-session-id` names. Anonymous callers have no sessions, since different
   * callers could not be distinguished.
   */
  async #send (
    caller: HttpCaller, view: View, server: string, method: string, params: Record<string, unknown>, paramsText?: string
  ): Promise<string> {
    const { principal, address, disconnect } = caller
    const id = principal.kind === 'anonymous' ? undefined : caller.headers['x-session-id']
    const headers = this.#selectHeaders(principal, server, caller.headers)
    return await this.#sessions.withSession(principal, address, id, async (client) =>
      await this.#calls.run(
        new PlainHttpExchange(view, method, params, { headers, address }, client, paramsText), server, disconnect
      ))
  }
}

/** Returns the result of a function; undefined if it throws. */
function tryRun<Result> (run: () => Result): Result | undefined {
  try {
    return run()
  } catch {
    return undefined
  }
}
