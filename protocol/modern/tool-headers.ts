import { elementsOf, memberOf, smallMemberOf, withMembers } from '../json.ts'
import { paramHeadersOf, type ParamHeader } from './param-headers.ts'

const annotation = 'x-mcp-header'

/**
 * The headers that repeat arguments, by the tools of one server. All connections to it share them, since not each of them reads its lists.
 * Those of the last reading count, and of the one before it while the last one is under way: no more is kept.
 */
export class ToolHeaders {
  #current = new Map<string, readonly ParamHeader[]>()
  #former = this.#current

  of (tool: string): readonly ParamHeader[] | undefined { return this.#current.get(tool) ?? this.#former.get(tool) }

  /**
   * Notes the tools of one page.
   * @param result of `tools/list`, as JSON text
   * @param isFirst it is the first page of a reading
   * @param warn called with a sentence for each tool that is left out
   * @returns the result without tools that must not be used over HTTP ("Custom Headers from Tool Parameters")
   */
  note (result: string, isFirst: boolean, warn: (sentence: string) => void): string {
    if (isFirst) {
      this.#former = this.#current
      this.#current = new Map()
    }
    if (!result.includes(annotation)) return result
    const tools = elementsOf(memberOf(result, 'tools') ?? '[]')
    const valid = tools.filter((tool) => {
      if (!tool.includes(annotation)) return true
      const name = String(smallMemberOf(tool, 'name'))
      const headers = paramHeadersOf(tool)
      if (headers) this.#current.set(name, headers)
      else warn(`tools: ${JSON.stringify(name)} is left out: an ${annotation} in its inputSchema is not valid`)
      return headers !== undefined
    })
    return valid.length === tools.length ? result : withMembers(result, { tools: `[${valid.join(',')}]` })
  }
}
