// How other threads wake the one that leads a channel and sleeps on its transport's descriptor: by one of its
// own beside that. There are as many as threads that sleep so at a time; who is done leaves its for the next.
#pragma once

namespace thalweg {

class LeadersBell {
  public:
    LeadersBell() = default;
    ~LeadersBell();
    LeadersBell(const LeadersBell&) = delete;
    LeadersBell& operator=(const LeadersBell&) = delete;

    // Readable while it is rung; made at the first call. -1: the system has none left.
    int descriptor();
    // Pre: it was rung.
    void silence();
    // By any thread. Pre: the bell that has this descriptor lives.
    static void ring(int descriptor);

  private:
    int descriptor_ = -1;
};

}  // namespace thalweg
