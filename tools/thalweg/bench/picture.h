// Curves on two logarithmic axes as SVG text. The same figures give the same text, so that a test can compare
// a picture with the rows it is made of. `thalweg bench plot` draws more, but matplotlib writes no version's
// pictures like another's.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace thalweg::bench {

// What a page refers to: where it lies as seen from the page, and its text.
struct Picture {
    std::string path, text;
};

struct Curve {
    std::string name;  // equal ones share a line of the legend
    std::string_view colour;
    // Both positive, x ascending; an infinite y stands at the upper edge and interrupts the curve.
    std::vector<std::pair<double, double>> points;
};

struct Panel {
    std::string title;
    std::vector<Curve> curves;
};

struct Axes {
    std::string across, up;  // what they show; across are bytes
    std::string infinite;    // what an infinite y means
    double line = 1;         // a level that is drawn through all panels
    std::string line_text;
};

// All panels have the same axes. Empty where there is no point.
std::string draw_panels(const std::vector<Panel>& panels, const Axes& axes);

}  // namespace thalweg::bench
