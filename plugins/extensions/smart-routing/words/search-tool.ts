/** A tool as searching sees it. The same object as long as the tool is unchanged. */
export interface SearchTool {
  /** As the route shows it, for example `github-create_issue`. */
  readonly name: string
  /** As its server has it. */
  readonly ownName: string
  readonly server: string
  readonly title?: string
  /** After overrides. */
  readonly description?: string
  /** The parsed JSON Schema. */
  readonly inputSchema?: unknown
}
