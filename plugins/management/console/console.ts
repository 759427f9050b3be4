import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import type { ConsoleSessions } from '../../../db/ports/console-sessions.ts'
import type { LiveStreams } from './live.ts'
import { WelcomeLink } from './welcome.ts'

declare module 'fastify' {
  interface FastifyInstance { console: WebConsole }
}

interface ConsoleOptions { consoleSessions: ConsoleSessions }

/** The web console. Most of its modules are loaded by the first request to it. */
export class WebConsole {
  /** False if CONSOLE is `off`. */
  readonly isOn: boolean
  /** The path of the console, including the base path. */
  readonly base: string
  readonly welcome: WelcomeLink
  readonly #app: FastifyInstance
  readonly #sessions: ConsoleSessions
  #live: LiveStreams | undefined

  constructor (app: FastifyInstance, sessions: ConsoleSessions) {
    this.isOn = app.config.env.CONSOLE !== 'off'
    this.base = `${app.config.basePath}/console`
    this.welcome = new WelcomeLink(() => app.settings.current.users)
    this.#app = app
    this.#sessions = sessions
  }

  /** Loads the plugin that serves the console. @param pages registers the routes of its pages */
  async load (pages: FastifyPluginAsync): Promise<FastifyPluginAsync> {
    const { serveConsole } = await import('./serve.ts')
    return async (annex) => { this.#live = await serveConsole(annex, this.#app, this.#sessions, pages) }
  }

  /** Ends the streams of open pages. */
  close (): void { this.#live?.close() }
}

/** Decorates the app with `console`: the web console, which uses the management API like any other client. */
export default fp<ConsoleOptions>(async (app, { consoleSessions }) => {
  const webConsole = new WebConsole(app, consoleSessions)
  app.decorate('console', webConsole)
  app.addHook('preClose', async () => { webConsole.close() })
}, { name: 'console', dependencies: ['config', 'settings'] })
