import type { SearchTool } from '../../plugins/extensions/smart-routing/words/index.ts'
import { keyOf, type Question } from './questions.ts'

/** The parts of all questions whose first right tool is the first, among the first five or ten; the mean of 1 / its place. */
export interface Quality { recall1: number, recall5: number, recall10: number, mrr: number, count: number }

/** Asks all questions. @param search answers the best tools of a question, 20 at least */
export function measure (questions: Question[], search: (query: string) => SearchTool[]): Quality {
  const places = questions.map((question) => placeOf(question, search))
  const within = (most: number): number => places.filter((place) => place <= most).length / places.length
  const mrr = places.reduce((sum, place) => sum + 1 / place, 0) / places.length
  return { recall1: within(1), recall5: within(5), recall10: within(10), mrr, count: places.length }
}

/** The place of the first right tool, from 1; Infinity if it is not among the results. */
export function placeOf ({ text, right }: Question, search: (query: string) => SearchTool[]): number {
  const at = search(text).findIndex((tool) => right.has(keyOf(tool)))
  return at === -1 ? Infinity : at + 1
}
