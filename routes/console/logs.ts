import type { FastifyPluginAsync } from 'fastify'
import { createPageRouter } from './page.ts'
import { paginate } from './lists.ts'

/** The log levels, in increasing severity. */
const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const

/** The value of the filter `server` that selects lines of the gateway itself. No server can have this name. */
const ownLines = '/'

/** The page with the newest lines of the log. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit, logs } = app
  createPageRouter(app).page('logs', {
    title: 'Logs', isInNav: true, watch: () => logs.newest?.id
  }, ({ query: { server = '', level = '', q = '', page = '1' } }) => {
    const all = logs.list()
    const least = Math.max(0, levels.findIndex((each) => each === level))
    const words = q.trim().toLowerCase()
    const isPrintedBy = ({ processId = ownLines }: { readonly processId?: string }): boolean =>
      server === '' || processId === server
    const chosen = all.filter((line) => levels.indexOf(line.level) >= least && isPrintedBy(line) &&
      (words === '' || line.message.toLowerCase().includes(words)))
    // The newest line comes first, so that it is visible without scrolling.
    const { items, pages } = paginate(chosen.reverse(), `${kit.base}/logs`, { server, level, q, page })
    const servers = [...new Set(all.flatMap(({ processId }) => processId ?? []))].sort()
    return {
      live: {},
      isFiltered: server !== '' || least > 0 || words !== '',
      filters: [
        {
          name: 'server',
          label: 'Source',
          value: server,
          options: [
            { value: '', text: 'all' }, { value: ownLines, text: 'the gateway itself' },
            ...servers.map((name) => ({ value: name, text: name }))
          ]
        },
        {
          name: 'level',
          label: 'Level',
          value: level,
          options: [
            { value: '', text: 'any' },
            ...levels.slice(2, 5).map((each) => ({ value: each, text: `${each} and above` }))
          ]
        },
        { name: 'q', label: 'Words', value: q }
      ],
      lines: items.map(({ id, timestamp, level: own, processId, message }) =>
        ({ id, at: new Date(timestamp).toISOString(), level: own, source: processId, text: message })),
      pages
    }
  })
}
export default routes
