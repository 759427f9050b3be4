import type { FastifyPluginAsync } from 'fastify'
import { explanationKey, type ScoreReasons } from '../../plugins/extensions/index.ts'
import { mcpPathOf, mcpRouteSelectOptions } from './viewers.ts'
import { createPageRouter } from './page.ts'
import { urlWithQuery } from './lists.ts'

/** A tool that `search_tools` has found. */
interface FoundTool {
  readonly name: string, readonly description?: string, readonly score?: number, readonly inputSchema?: unknown
}

/** The page that shows which tools smart routing (`search_tools` of `$smart`) finds for a query, and why. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit } = app
  const { page } = createPageRouter(app)
  page('search-lab', { title: 'Search lab', isInNav: true }, async ({ principal, query, request }) => {
    const { query: words = '', route = '' } = query
    const routes = mcpRouteSelectOptions(app, principal, route).filter(({ value }) => value !== '$smart')
    const common = { query: words, routes }
    if (words.trim() === '') return common
    const path = route === '' ? '/mcp/$smart' : mcpPathOf(route).replace('/mcp/', '/mcp/$smart/')
    const begun = performance.now()
    const params = JSON.stringify({
      name: 'search_tools', arguments: { query: words, limit: 20 }, _meta: { [explanationKey]: true }
    })
    const viewer = { username: principal.username ?? '' }
    const { result, problem } = await kit.mcp.ask(request, path, viewer, 'tools/call', params)
    const ms = performance.now() - begun
    const { tools = [], metadata } = (result?.structuredContent ?? {}) as { tools?: FoundTool[], metadata?: Metadata }
    const meta = result?._meta as Partial<Record<string, Record<string, ScoreReasons>>> | undefined
    const reasons = meta?.[explanationKey] ?? {}
    const best = Math.max(...tools.map(({ score = 0 }) => score), Number.EPSILON)
    return {
      ...common,
      ms,
      remark: problem ?? metadata?.reason ?? metadata?.hint,
      tokens: kit.costs.ofValue(result ?? {}),
      found: tools.map((tool) => ({
        name: tool.name,
        href: urlWithQuery(`${kit.base}/playground`, { route: route === '' ? '$smart' : route, q: tool.name }),
        description: tool.description ?? '',
        score: Math.max(0, (tool.score ?? 0) / best),
        reasons: reasonsOf(reasons[tool.name])
      }))
    }
  })
}
export default routes

interface Metadata { readonly reason?: string, readonly hint?: string }

/** The max number of terms that are shown for a tool. */
const maxTerms = 6

/** Returns a text for each part of a tool's score. */
function reasonsOf ({ terms = [], name = 0, isNamed = false, meaning }: ScoreReasons = {}): string[] {
  const percent = (part: number): string => `${Math.round(100 * part)} %`
  return [
    ...isNamed ? ['exact name'] : [],
    ...terms.slice(0, maxTerms).map(({ word, asked, part }) =>
      `${word}${asked === undefined ? '' : `, for ${asked}`}: ${percent(part)}`),
    ...terms.length > maxTerms ? [`${terms.length - maxTerms} more`] : [],
    ...name > 0 ? [`${percent(name)} of its name`] : [],
    ...meaning !== undefined && meaning > 0 ? [`meaning: ${percent(meaning)}`] : []
  ]
}
