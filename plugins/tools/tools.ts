import type { IncomingHttpHeaders } from 'node:http'
import { isObject, withMembers } from '../../protocol/json.ts'
import { errors } from '../errors/list.ts'
import type { Access } from '../access/index.ts'
import { DirectExchange } from './exchange.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { Principal, View } from '../access/view.ts'
import { limits } from '../limits/index.ts'
import type { Upstream } from '../upstream/upstream.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import { fromBody, fromQuery } from './given.ts'
import { inputOf, type ToolInput } from './tool-input.ts'
import type { OwnHeaders } from './own-headers.ts'
import { InFlightCalls } from './in-flight-calls.ts'
import { RestSessions } from './sessions.ts'

/** Which tool of which server; `name`: through which group, or the server itself, where the route says so. */
export interface ToolWord { server: string, tool: string, name?: string }

/** Arguments as they arrived: what stands behind the question mark of the address, and the body where there is one. */
export interface Given { search: string, body?: string }

/** Tools as a caller without MCP runs them. */
export class Tools {
  readonly #gateway: Gateway
  readonly #access: Access
  readonly #upstreams: Upstreams
  readonly #ownHeaders: OwnHeaders
  readonly #sessions: RestSessions
  readonly #calls: InFlightCalls

  constructor (gateway: Gateway, access: Access, upstreams: Upstreams, ownHeaders: OwnHeaders) {
    this.#gateway = gateway
    this.#access = access
    this.#upstreams = upstreams
    this.#ownHeaders = ownHeaders
    this.#calls = new InFlightCalls(gateway, (server, text) => upstreams.get(server)?.hide(text) ?? text)
    this.#sessions = new RestSessions({ idle: limits.restSessionIdle, most: limits.restSessions }, (client) => {
      void upstreams.release(client).catch(() => {})
    })
  }

  /**
   * Calls a tool of one server.
   * @returns the text of the result as the tool gave it, failed or not, with `toolName` and `arguments` beside its members
   * @throws NoSuch for a server or tool that is not there for this principal, InvalidInput, UpstreamFailed, UpstreamSlow, TooManyCalls
   */
  async call (
    principal: Principal,
    server: string,
    name: string,
    args: Record<string, unknown>,
    headers: IncomingHttpHeaders,
    gone: AbortSignal
  ): Promise<string> {
    const view = this.#access.server(principal, server)
    let input = this.#input(server, name)
    if (!input) {
      await this.#upstreams.learn([server], new DirectExchange(view, 'tools/list', {}, headers).client, true)
      // Sent on, the call would wait as long once more.
      const upstream = this.#upstreams.get(server)
      if (upstream?.status === 'connecting' && !upstream.listed) throw notConnected(upstream)
      input = this.#input(server, name)
    }
    const result = await this.#tool(view, server, input, { name, arguments: input ? input.read(args, false) : args }, headers, gone)
    if (!result.trimStart().startsWith('{')) {
      throw new errors.UpstreamFailed(`Server ${JSON.stringify(server)} answered with something that is no result of a tool`)
    }
    return withMembers(result, { toolName: JSON.stringify(name), arguments: JSON.stringify(args) })
  }

  /** @throws NoSuch for a server that is not there for this principal, or a prompt that it is known not to have */
  mustHavePrompt (principal: Principal, server: string, name: string): void {
    const view = this.#access.server(principal, server)
    const { client } = new DirectExchange(view, 'prompts/list', {}, {})
    const { parts, capabilities } = this.#gateway.surface(view, client)
    const prefix = `${server}${this.#gateway.separator}`
    if (
      capabilities.has(server) &&
      !parts.prompts.targets.has(name) &&
      !(name.startsWith(prefix) && parts.prompts.targets.has(name.slice(prefix.length)))
    ) {
      throw new errors.NoSuch('prompt')
    }
  }

  /**
   * Fills in a prompt of one server.
   * @param args texts, as MCP wants them; other values become the text that says them
   * @returns the result as the server gave it
   * @throws as `call`
   */
  async prompt (
    principal: Principal,
    server: string,
    name: string,
    args: Record<string, unknown>,
    headers: IncomingHttpHeaders,
    gone: AbortSignal
  ): Promise<Record<string, unknown>> {
    const view = this.#access.server(principal, server)
    const texts = Object.fromEntries(
      Object.entries(args).map(([key, value]) => [key, typeof value === 'string' ? value : JSON.stringify(value)])
    )
    const result: unknown = JSON.parse(await this.#send(view, server, 'prompts/get', { name, arguments: texts }, headers, gone))
    return isObject(result) ? result : {}
  }

  /**
   * Executes a tool on an open route (DECISIONS §8). Arguments that do not fit its input schema never reach the upstream.
   * @returns the text of the result as the tool gave it, failed or not
   * @throws as `call`; NoSuch says the same of everything that is not there, or not open to this caller
   */
  async open (
    principal: Principal,
    { server, tool, name }: ToolWord,
    { search, body }: Given,
    headers: IncomingHttpHeaders,
    gone: AbortSignal
  ): Promise<string> {
    const query = fromQuery(search)
    const { group } = query
    // A tool's own argument of that name comes first.
    const isWord =
      name === undefined &&
      group !== undefined &&
      (body !== undefined || inputOf(this.#upstreams.get(server), tool)?.names('group') !== true)
    const view = this.#access.open(
      principal,
      isWord && typeof group === 'string' ? { group } : name === undefined ? { server } : { name },
      'tool'
    )
    if (isWord && typeof group !== 'string') throw new errors.InvalidInput('The query names several groups; name one')
    if (isWord) delete query.group
    const exposed = await this.#exposed(view, server, tool, headers)
    const input = inputOf(this.#upstreams.get(server), tool)
    const given = body === undefined ? query : fromBody(body)
    const args = input ? fitting(input, given) : given
    return await this.#tool(view, server, input, { name: exposed, arguments: args }, headers, gone)
  }

  /** The settings changed: what callers may not do any more ends, and their sessions. @param standing a caller now; undefined: nobody any more */
  withdraw (standing: (principal: Principal) => Principal | undefined): void {
    this.#sessions.withdraw((principal) => standing(principal) !== undefined)
    this.#calls.withdraw((view, server) => {
      const principal = standing(view.principal)
      if (!principal) return new errors.Unauthorized('Your access was withdrawn while the call ran')
      return this.#access.reaches(view, principal, server) ? undefined : new errors.NoSuch('tool')
    })
  }

  /** Waits for the calls that run, so many ms; what is left then answers with an error. */
  async close (timeout: number): Promise<void> {
    this.#sessions.close()
    await this.#calls.close(timeout)
  }

  /** What a server's tool takes, by its own name or the one that merged routes show. */
  #input (server: string, name: string): ToolInput | undefined {
    const upstream = this.#upstreams.get(server)
    const prefix = `${server}${this.#gateway.separator}`
    return inputOf(upstream, name) ?? (name.startsWith(prefix) ? inputOf(upstream, name.slice(prefix.length)) : undefined)
  }

  /** The name under which a view shows a tool. Waits for a server that is connecting and has never been seen. @throws NoSuch, UpstreamFailed */
  async #exposed (view: View, server: string, tool: string, headers: IncomingHttpHeaders): Promise<string> {
    const { client } = new DirectExchange(view, 'tools/list', {}, headers)
    const found = this.#find(view, client, server, tool)
    if (found !== undefined) return found
    if (!this.#gateway.surface(view, client).servers.includes(server)) throw new errors.NoSuch('tool')
    await this.#upstreams.learn([server], client, true)
    const learnt = this.#find(view, client, server, tool)
    if (learnt !== undefined) return learnt
    const upstream = this.#upstreams.get(server)
    throw upstream && upstream.status !== 'connected' && !upstream.listed ? notConnected(upstream) : new errors.NoSuch('tool')
  }

  #find (view: View, client: DirectExchange['client'], server: string, tool: string): string | undefined {
    const { targets } = this.#gateway.surface(view, client).parts.tools
    if (view.scope.kind === 'server') return view.scope.name === server && targets.has(tool) ? tool : undefined
    for (const [name, target] of targets) if (target.server === server && target.key === tool) return name
    return undefined
  }

  /** Executes a tool, and waits for its result where it runs as a task. */
  async #tool (
    view: View,
    server: string,
    input: ToolInput | undefined,
    params: Record<string, unknown>,
    headers: IncomingHttpHeaders,
    gone: AbortSignal
  ): Promise<string> {
    if (input?.asTask !== true) return await this.#send(view, server, 'tools/call', params, headers, gone)
    const begun = await this.#send(view, server, 'tools/call', { ...params, task: {} }, headers, gone)
    const { task } = JSON.parse(begun) as { task?: { taskId?: unknown } }
    if (task === undefined) return begun
    const { taskId } = task
    try {
      return await this.#send(view, server, 'tasks/result', { taskId }, headers, gone)
    } catch (error) {
      this.#send(view, server, 'tasks/cancel', { taskId }, headers, new AbortController().signal).catch(() => {})
      throw error
    }
  }

  /** Sends one request on, in the session that `x-session-id` names. Callers whom nobody knows have none: it would not be theirs. */
  async #send (
    view: View,
    server: string,
    method: string,
    params: Record<string, unknown>,
    headers: IncomingHttpHeaders,
    gone: AbortSignal
  ): Promise<string> {
    const { principal } = view
    const id = principal.kind === 'anonymous' ? undefined : headers['x-session-id']
    return await this.#sessions.in(
      principal,
      id,
      async (client) =>
        await this.#calls.run(new DirectExchange(view, method, params, this.#ownHeaders(principal, server, headers), client), server, gone)
    )
  }
}

/** So many arguments are read in another way, where the first one does not fit. */
const mostReadings = 20

/** Arguments as the tool takes them. @throws InvalidInput that names those that do not fit */
function fitting ({ read, check }: ToolInput, given: Record<string, unknown>): Record<string, unknown> {
  let args = read(given, false)
  let problems = check(args)
  if (problems.length === 0) return args
  // A text that a pattern or a length keeps out may be the number that fits.
  const others = Object.entries(read(given, true)).filter(([name, value]) => value !== args[name])
  for (const other of others.slice(0, mostReadings)) {
    const tried = Object.fromEntries([...Object.entries(args), other])
    const left = check(tried)
    if (left.length < problems.length) { args = tried; problems = left }
  }
  if (problems.length > 0) throw new errors.InvalidInput(`The arguments do not fit: ${problems.slice(0, 10).join('; ')}`)
  return args
}

const notConnected = ({ name, reason }: Upstream): Error =>
  new errors.UpstreamFailed(`Server ${JSON.stringify(name)} is not connected: ${reason ?? 'it is still connecting'}`)
