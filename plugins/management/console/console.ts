import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import type { ConsoleSessions } from '../../../db/ports/console-sessions.ts'
import { WelcomeLink } from './welcome.ts'

declare module 'fastify' {
  interface FastifyInstance { console: Console }
}

export interface ConsoleOptions { consoleSessions: ConsoleSessions }

/** The console. Its modules are loaded by the first request for it. */
export class Console {
  readonly isOn: boolean
  readonly welcome: WelcomeLink
  readonly #outer: FastifyInstance
  readonly #sessions: ConsoleSessions
  #inner: Promise<FastifyInstance> | undefined

  constructor (outer: FastifyInstance, sessions: ConsoleSessions) {
    this.isOn = outer.config.env.CONSOLE !== 'off'
    this.welcome = new WelcomeLink(() => outer.settings.current.users)
    this.#outer = outer
    this.#sessions = sessions
  }

  /** The Fastify instance with the pages; the first call makes it. */
  async open (load: () => Promise<FastifyPluginAsync>): Promise<FastifyInstance> {
    const opening = this.#inner ??= this.#make(load)
    try {
      return await opening
    } catch (error) {
      if (this.#inner === opening) this.#inner = undefined
      throw error
    }
  }

  /** Ends its streams. */
  async close (): Promise<void> {
    const inner = await this.#inner?.catch(() => undefined)
    await inner?.close()
  }

  async #make (load: () => Promise<FastifyPluginAsync>): Promise<FastifyInstance> {
    const [{ makeInner }, pages] = await Promise.all([import('./inner.ts'), load()])
    return await makeInner(this.#outer, this.#sessions, pages)
  }
}

/** `app.console`: the web console, which uses the management API like any other client. */
export default fp<ConsoleOptions>(async (app, { consoleSessions }) => {
  const pages = new Console(app, consoleSessions)
  app.decorate('console', pages)
  app.addHook('preClose', async () => { await pages.close() })
}, { name: 'console', dependencies: ['config', 'settings'] })
