import type { FastifyPluginAsync } from 'fastify'
import { pathOf, routesOf } from './eyes.ts'
import { pagesOf } from './page.ts'
import { addressOf } from './states.ts'

/** A tool that `$smart` found. */
interface Found {
  readonly name: string, readonly description?: string, readonly score?: number, readonly inputSchema?: unknown
}

/** Page: shows what `$smart` finds for a query, and why. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit } = app
  pagesOf(app).page('search-lab', { title: 'Search lab', isInNav: true }, async ({ principal, query, request }) => {
    const { query: words = '', route = '' } = query
    const common = { query: words, routes: routesOf(app, principal, route).filter(({ value }) => value !== '$smart') }
    if (words.trim() === '') return common
    const path = route === '' ? '/mcp/$smart' : pathOf(route).replace('/mcp/', '/mcp/$smart/')
    const begun = performance.now()
    const params = JSON.stringify({ name: 'search_tools', arguments: { query: words, limit: 20 } })
    const eyes = { username: principal.username ?? '' }
    const { result, problem } = await kit.mcp.ask(request, path, eyes, 'tools/call', params)
    const ms = performance.now() - begun
    const { tools = [], metadata } = (result?.structuredContent ?? {}) as { tools?: Found[], metadata?: Metadata }
    const best = Math.max(...tools.map(({ score = 0 }) => score), Number.EPSILON)
    return {
      ...common,
      ms,
      remark: problem ?? metadata?.message,
      tokens: kit.costs.ofValue(result ?? {}),
      found: tools.map((tool) => ({
        name: tool.name,
        href: addressOf(`${kit.base}/playground`, { route: route === '' ? '$smart' : route, q: tool.name }),
        description: tool.description ?? '',
        score: Math.max(0, (tool.score ?? 0) / best),
        reasons: reasonsOf(words, tool)
      }))
    }
  })
}
export default routes

interface Metadata { readonly message?: string }

/** The parts of a tool in which the words of a query occur. */
function reasonsOf (query: string, { name, description = '', inputSchema }: Found): string[] {
  const words = [...new Set(query.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter((word) => word.length > 2))]
  const places: Array<[string, string]> = [
    ['name', name], ['description', description], ['parameters', JSON.stringify(inputSchema ?? {})]
  ]
  const reasons = places.flatMap(([place, text]) => {
    const inPlace = words.filter((word) => text.toLowerCase().includes(word.slice(0, Math.max(4, word.length - 2))))
    return inPlace.length === 0 ? [] : [`${place}: ${inPlace.join(', ')}`]
  })
  return reasons.length === 0 ? ['by meaning, or by words that mean the same'] : reasons
}
