/** Scopes whose paths are there in any configuration. Those of the others answer 404 while they are off, whatever the method. */
const always: readonly string[] = ['public', 'docs', 'open', 'api', 'admin', 'mcp']

/** A path of the router as a pattern. */
const patternOf = (url: string): RegExp => {
  const parts = url.replace(/(?<=.)\/$/, '').split('/').map((part) =>
    part.startsWith(':') ? '[^/]+' : part.split('*').map((text) => text.replace(/[\\^$.|?+()[\]{}]/g, '\\$&')).join('.*'))
  return new RegExp(`^${parts.join('/')}/?$`)
}

/**
 * Says which methods a path takes, for requests with another one.
 * @param table the routes, once all are registered
 * @param isHidden whether a scope answers as if it were not there
 * @returns none for a path that no route has
 */
export function methodsOf (
  table: ReadonlyArray<Readonly<Record<'method' | 'url' | 'scope', string>>>,
  isHidden: (scope: string) => boolean
): (path: string) => string[] {
  let patterns: Array<{ pattern: RegExp, methods: string[] }> | undefined
  const compile = (): Array<{ pattern: RegExp, methods: string[] }> => {
    const byUrl = new Map<string, string[]>()
    for (const { method, url, scope } of table) {
      // MCP routes take PUT and PATCH only to say that they do not.
      if (method === 'OPTIONS' || !always.includes(scope) || isHidden(scope) || (scope === 'mcp' && /^P(?:UT|ATCH)$/.test(method))) continue
      byUrl.set(url, [...byUrl.get(url) ?? [], method])
    }
    return [...byUrl].map(([url, methods]) => ({ pattern: patternOf(url), methods }))
  }
  return (path) => {
    patterns ??= compile()
    return [...new Set(patterns.filter(({ pattern }) => pattern.test(path)).flatMap(({ methods }) => methods))].sort()
  }
}
