import { TOPICS, type Topic } from '../../domain/events.js';

export function topicName(prefix: string, topic: Topic): string {
  return `${prefix}.${topic}`;
}

export function deadLetterName(prefix: string, topic: Topic): string {
  return `${topicName(prefix, topic)}.dlq`;
}

export function allNames(prefix: string): readonly string[] {
  return TOPICS.flatMap((topic) => [topicName(prefix, topic), deadLetterName(prefix, topic)]);
}
